"""Providers run tools of one kind each, for the engine. Of the engine they know its catalog alone."""
