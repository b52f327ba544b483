"""Journals, which keep facts: in memory for tests and single calls, in an SQLite file by default."""
