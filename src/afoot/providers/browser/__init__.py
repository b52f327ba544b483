"""Browser tabs as tools: the provider, and the two ways to a browser (the extension, and CDP)."""
