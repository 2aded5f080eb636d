"""What operators give back, by shape, dtype and strides alone: the rules that stand under every device."""
