"""Other people's MCP servers, as tools."""
