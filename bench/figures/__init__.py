"""Figures about the code, for reviewers: sizes, names, imports and the paths of three calls."""
