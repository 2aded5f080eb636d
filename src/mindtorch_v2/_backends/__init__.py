"""The devices: how tensors are made, and how operators run, on each of them."""
