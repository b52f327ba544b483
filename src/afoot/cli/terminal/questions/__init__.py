"""Questions to a person in a terminal: forms for their fields, and dialogs that answer them."""
