"""Commands on calls: make one, watch them, read and delete their history, answer and allow."""
