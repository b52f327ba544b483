"""The suite's tools that only the gateway itself can have; all others come from the server behind it."""

from tests.conformance.fixture import json_schema_2020_12_tool, test_custom_header, test_missing_capability

__all__ = ["json_schema_2020_12_tool", "test_custom_header", "test_missing_capability"]
