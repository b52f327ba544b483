"""The live view of all calls: the events of a gateway, the state folded from them, and its drawing."""
