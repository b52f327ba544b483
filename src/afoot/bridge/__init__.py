"""The bridge between a host's pipe and the gateway: it finds or starts the gateway, and carries messages."""
