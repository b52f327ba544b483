"""Transports to one server: the port, and its implementations over HTTP, over pipes, and in this process."""
