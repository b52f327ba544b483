"""Journals keep the facts of calls: in an SQLite file by default, in memory for tests."""
