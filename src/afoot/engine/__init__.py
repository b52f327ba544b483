"""The engine runs calls; everything that changes a call passes through `Engine.commit`."""
