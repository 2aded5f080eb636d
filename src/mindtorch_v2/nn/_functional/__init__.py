"""The parts of :mod:`mindtorch_v2.nn.functional`, by meaning."""
