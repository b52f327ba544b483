"""The HTTP server of a gateway: its sockets, bounds for unknown peers, and the end of an idle gateway."""
