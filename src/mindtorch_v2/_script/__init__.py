"""TorchScript files, read and run: `torch.jit.load`.

The code in a file is a closed language, which is interpreted over this library's operators (`functions`, `expressions`, `calls`). There is no compiler: a
program's own functions are not scripted.
"""
