"""The bridge from a host's pipe to the running gateway: finds or starts it, carries messages, outlives it."""
