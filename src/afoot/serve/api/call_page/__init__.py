"""Routes behind the page of a call: its story, its neighbours, and its delayed cancel."""
