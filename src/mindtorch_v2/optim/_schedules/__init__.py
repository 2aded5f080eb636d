"""The parts of :mod:`mindtorch_v2.optim.lr_scheduler`, by meaning."""
