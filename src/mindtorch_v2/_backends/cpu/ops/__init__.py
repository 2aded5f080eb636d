"""Numpy kernels, one module per family of operators."""
