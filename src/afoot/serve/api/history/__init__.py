"""The history over the operator's API: filters of calls, a summary, purge and export."""
