"""Hand-written members of Tensor, by meaning: each module has a table MEMBERS, and ATTACHED, the same with what stands before them in C.

A module is imported when one of its members is first used. The names stand here for that; a test compares them with the tables.
"""

from __future__ import annotations

from typing import Any

from ..._dispatch.lazy import LazyMethod, LazyProperty, attach

# Methods, and attributes that are no properties.
METHODS = {
    "attributes": (
        "has_names is_contiguous storage_type data_ptr untyped_storage _typed_storage is_floating_point is_complex "
        "is_signed get_device is_conj is_neg _is_zerotensor _fix_weakref resolve_conj resolve_neg is_pinned pin_memory record_stream "
        "share_memory_ is_shared is_distributed set_ is_set_to resize_ resize_as_ dim_order type"
    ),
    "conversion": (
        "float double half bfloat16 int long short char byte bool chalf cfloat cdouble to cpu cuda npu xpu ipu mtia mps "
        "type_as numpy __array__ __array_priority__ item tolist is_nonzero __bool__ __int__ __float__ __complex__ "
        "__index__ __invert__ module_load new_tensor new __dlpack__ __dlpack_device__ _to_dtype"
    ),
    "former": "eig lstsq solve symeig resize resize_as reinforce const_data_ptr __long__ __nonzero__",
    "gradient": (
        "requires_grad_ backward detach_ register_hook register_post_accumulate_grad_hook retain_grad "
        "is_inference _is_view"
    ),
    "indexing": ("__getitem__ __setitem__ __delitem__"),
    "protocols": (
        "__repr__ __str__ __format__ __hash__ __len__ __iter__ __contains__ __reversed__ __deepcopy__ "
        "__reduce_ex__ __setstate__ __dir__ as_subclass _make_subclass "
        "_make_wrapper_subclass __array_wrap__ __torch_function__"
    ),
    "sparse": ("is_coalesced _coalesced_ _nnz sparse_dim dense_dim _dimI _dimV to_sparse_coo"),
    "shapes": ("split norm stft nonzero unique unique_consecutive lu apply_ map_ map2_ is_same_size"),
}
# Properties.
PROPERTIES = {
    "attributes": (
        "layout is_cpu is_meta is_cuda is_npu is_xpu is_mps is_xla is_hpu is_mtia is_ipu is_maia is_vulkan "
        "is_sparse is_sparse_csr is_mkldnn is_quantized is_nested names volatile storage _cdata"
    ),
    "former": "grad_dtype name",
    "gradient": ("requires_grad grad grad_fn is_leaf retains_grad data output_nr _grad_fn _backward_hooks"),
    "shapes": ("T mT H mH real imag"),
}


def install(tensor: Any) -> None:
    """Attach every member to the class, by name."""
    for kind, table in ((LazyMethod, METHODS), (LazyProperty, PROPERTIES)):
        for module, names in table.items():
            for name in names.split():
                attach(kind, tensor, f"{__name__}.{module}", "ATTACHED", name)
