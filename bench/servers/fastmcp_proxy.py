"""FastMCP's proxy with its defaults: `python fastmcp_proxy.py PORT URL`, or `PORT COMMAND ARGUMENTS…`."""

import sys
from typing import Any

from fastmcp.server import create_proxy

if __name__ == "__main__":
    port, target, *rest = sys.argv[1:]
    upstream: Any = target
    if rest:
        upstream = {"mcpServers": {"up": {"command": target, "args": rest}}}
    proxy = create_proxy(upstream)
    proxy.run("http", host="127.0.0.1", port=int(port), log_level="warning", show_banner=False)
