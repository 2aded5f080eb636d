# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils.cpp_extension, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, returning

_MODULE = "torch.utils.cpp_extension"
_BECAUSE = "C++ extensions of torch cannot be compiled against mindtorch_v2"
CUDA_HOME = None
ROCM_HOME = None
is_ninja_available = returning("is_ninja_available", _MODULE, False)
CppExtension = import_only_function("CppExtension", _MODULE, _BECAUSE, NotImplementedError)
CUDAExtension = import_only_function("CUDAExtension", _MODULE, _BECAUSE, NotImplementedError)
include_paths = import_only_function("include_paths", _MODULE, _BECAUSE, NotImplementedError)
library_paths = import_only_function("library_paths", _MODULE, _BECAUSE, NotImplementedError)
load = import_only_function("load", _MODULE, _BECAUSE, NotImplementedError)
load_inline = import_only_function("load_inline", _MODULE, _BECAUSE, NotImplementedError)
SyclExtension = import_only_function("SyclExtension", _MODULE, _BECAUSE, NotImplementedError)
verify_ninja_availability = import_only_function("verify_ninja_availability", _MODULE, _BECAUSE, NotImplementedError)


class BuildExtension(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
