"""Resources, prompts and completions that Python functions offer."""
