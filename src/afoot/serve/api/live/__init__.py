"""Routes behind the live view: the event feed of all calls, the clocks of calls, and the last hour."""
