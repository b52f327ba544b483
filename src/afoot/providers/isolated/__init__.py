"""Functions that run in child processes: they can be killed, have limits, and report live (G1)."""
