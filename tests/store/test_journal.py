"""The contract of journals, over every journal there is."""

from tests.store.contract import *  # noqa: F403
