"""The WebSocket of the browser extension, and the frames for its side panel."""
