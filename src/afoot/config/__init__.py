"""Settings: the configuration file, `mcp.json` files and the state folder."""
