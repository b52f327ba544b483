"""Routes on questions: open ones and their answers, earlier answers, and the allowlist."""
