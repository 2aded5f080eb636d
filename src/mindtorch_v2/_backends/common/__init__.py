"""What is the same on every device: views and conversions of numbers."""
