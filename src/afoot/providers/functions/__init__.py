"""Python functions as tools: loading, signatures, the `Context`, threads and progress bars."""
