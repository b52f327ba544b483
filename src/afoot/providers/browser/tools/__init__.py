"""The tools of pages and plugins: their sources, checked definitions, names, and the list of all."""
