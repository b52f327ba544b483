"""The protocols, sans I/O: bytes become typed values, values become bytes; nobody here waits or sends."""
