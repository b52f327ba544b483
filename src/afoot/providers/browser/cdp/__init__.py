"""Browsers without an extension: their pages' tools over the DevTools protocol (B5)."""
