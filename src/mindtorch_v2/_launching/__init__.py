"""Starting programs that want to be started by `torchrun`: in this process, as the only rank."""
