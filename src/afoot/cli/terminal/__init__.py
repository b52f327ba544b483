"""Terminal output and input: live tables, progress lines, prompts and forms."""
