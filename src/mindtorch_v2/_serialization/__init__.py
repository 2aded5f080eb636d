"""How tensors and programs' objects get into files and out of them; `serialization` is the public side."""
