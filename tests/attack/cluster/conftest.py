"""A Redis that somebody else writes to, and the clusters in it."""

from tests.cluster.conftest import name, pytest_pyfunc_call, redis, settings

__all__ = ["name", "pytest_pyfunc_call", "redis", "settings"]
