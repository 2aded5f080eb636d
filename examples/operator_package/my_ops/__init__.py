"""Operators of a package of its own: `torch.ops.my_ops.scaled_tanh`, `torch.ops.my_ops.rms_pair`, ...

schema/ says what they are; `python -m mindtorch_v2.codegen --schema my_ops/schema --out my_ops/generated` writes generated/ of it.
"""
