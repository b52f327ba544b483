"""Routes behind the page of a call: its story, its neighbours, its delayed cancel, and earlier answers."""
