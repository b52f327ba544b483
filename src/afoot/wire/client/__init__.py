"""MCP as a client speaks it to servers: messages it sends, messages it receives, and tasks of a server."""
