"""The contract of journals, over the one in Redis."""

from tests.store.journal_contract import *  # noqa: F403
