"""The code generator: reads schema/, writes generated/. Never shipped, never imported at run time."""
