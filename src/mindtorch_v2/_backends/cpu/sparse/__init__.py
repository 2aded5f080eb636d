"""Kernels of sparse tensors on the CPU, by family: tensors in schema order in, tensors out. See `_dispatch/sparse.py`."""
