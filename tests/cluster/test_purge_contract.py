"""The contract of what goes from a history, over the one in Redis."""

from tests.store.purge_contract import *  # noqa: F403
