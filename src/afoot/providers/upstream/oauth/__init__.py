"""OAuth for upstream servers: stored tokens, the login in a browser, and the logins under way (U7)."""
