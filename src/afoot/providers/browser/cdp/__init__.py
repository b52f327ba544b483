"""Tools of pages in a browser without the extension, over the Chrome DevTools Protocol (B5)."""
