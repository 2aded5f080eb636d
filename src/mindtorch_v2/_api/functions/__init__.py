"""Public functions that are no operators: constructors, queries, settings."""
