"""The same four tools (`noop`, `ticks`, `cost`, `wait`), once for each server under test."""
