"""The tape: nodes, the engine that walks them, and what in-place changes do to histories."""
