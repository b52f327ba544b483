"""The MCP server: both protocol eras over HTTP and stdio."""
