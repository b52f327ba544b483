"""The contract of journals, over every journal there is."""

from tests.store.journal_contract import *  # noqa: F403
