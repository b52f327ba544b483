"""Routes behind the live view: the events of all calls and of one, the clocks of calls, the last hour."""
