"""`torch.compile`: functions and modules whose chains of operators run part by part through the cache, with the same results bit for bit."""
