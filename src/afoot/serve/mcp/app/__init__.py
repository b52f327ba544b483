"""The MCP App of this gateway: its page, and the tools that the page calls through its host (V7)."""
