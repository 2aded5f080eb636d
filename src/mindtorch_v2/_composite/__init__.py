"""Operators made of other operators, one module per family. The dispatcher imports a module at its first use."""
