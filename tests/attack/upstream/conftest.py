"""Async tests run by a loop of their own."""

from tests.providers.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
