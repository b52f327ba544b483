"""Functions as tools in child processes: they can be killed, have resource limits, and report live (G1)."""
