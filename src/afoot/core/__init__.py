"""The pure heart: facts, the call they fold into, and the rules of what may follow."""
