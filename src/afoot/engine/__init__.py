"""The one door: everything that changes a call passes through here."""
