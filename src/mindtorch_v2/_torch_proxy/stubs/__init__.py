"""Hand-written behaviour of stub modules; `schema/torch_proxy.yaml` says which names of which modules are from here."""
