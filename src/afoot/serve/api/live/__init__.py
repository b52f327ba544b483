"""Routes behind the live view: the feed of everything, the clocks of calls, and the last hour."""
