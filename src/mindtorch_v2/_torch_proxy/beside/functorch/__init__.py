"""functorch, served by mindtorch_v2 as `torch` is."""

import torch  # noqa: F401 (from then on the finder knows functorch)

from mindtorch_v2._torch_proxy import take_place

take_place(__name__)
