"""Browser tabs as tools: the provider, and the two carriers that reach a browser."""
