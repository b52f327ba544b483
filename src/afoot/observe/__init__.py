"""Followers of calls that make them visible: here only as words in a terminal."""
