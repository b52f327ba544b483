"""Commands for browsers: install the extension, try it in a new browser, begin a plugin."""
