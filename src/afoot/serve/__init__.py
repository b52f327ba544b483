"""The surfaces of a gateway: MCP over HTTP and stdio, and the operator's API."""
