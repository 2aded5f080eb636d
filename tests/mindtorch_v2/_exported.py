"""What the tests of `torch.export` share."""

from __future__ import annotations

from mindtorch_v2 import nn


class Function(nn.Module):
    """A function of the module and its arguments, with parts."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x, y=None):
        return self.function(self, x) if y is None else self.function(self, x, y)
