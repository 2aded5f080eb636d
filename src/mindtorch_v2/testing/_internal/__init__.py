"""What PyTorch's own tests use, as far as programs use it too."""
