"""The pure part: facts, the call they fold into, and the rules of what may follow."""
