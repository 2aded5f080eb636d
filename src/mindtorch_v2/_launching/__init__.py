"""Starting programs as `torchrun` does."""
