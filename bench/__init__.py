"""Benchmarks: the same tools on afoot, the official SDK and FastMCP, measured in one run."""
