"""The programs that start MCP servers: where their files are, how afoot gets into them, and out again."""
