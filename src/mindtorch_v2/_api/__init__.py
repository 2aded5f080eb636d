"""Functions and methods that are written by hand, beside the generated ones."""
