"""Plugins for web pages: one folder of scripts, all folders of a gateway, and the match patterns of both."""
