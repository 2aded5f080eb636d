"""Operators as records, and the general path from a call to a result."""
