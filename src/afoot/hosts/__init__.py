"""Hosts are programs that start MCP servers; this package adds afoot to their files and removes it again."""
