"""Calls as tasks of MCP: requests about tasks, news of their changes, and the tasks of 2025-11-25."""
