"""The HTTP API of the gateway: one module for each resource below `/api`."""
