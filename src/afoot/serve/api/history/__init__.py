"""The history over the operator's API: which calls are wanted, their summary, and the whole of it."""
