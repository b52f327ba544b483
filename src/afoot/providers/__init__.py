"""Providers: each runs tools of one kind for the engine; nothing in here knows the engine."""
