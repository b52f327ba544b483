"""Access control: named tokens, browser sessions, JSON Web Tokens, and the checks of each request."""
