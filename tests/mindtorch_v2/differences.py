"""Where outcomes differ from those recorded from PyTorch, by operator (or expression) and kind of difference, with the reason.

test_values.py fails for a difference that is not here, and for an entry that no case needs any more: strike it then.
"""

from __future__ import annotations

DTYPES = "takes a dtype that PyTorch's CPU kernel does not know"
EMPTY = "looks at the dtype or the size of a tensor without elements, which PyTorch does not"
HALF_OVERFLOW = "computes half types in float32, where PyTorch overflows"
HALF_ROUNDING = "rounds half types at other steps than PyTorch"
KERNEL = "names the kernel that does not know the dtype in another way"
LENIENT = "takes arguments that PyTorch refuses"
POLES = "is infinite at a pole, where PyTorch's series ends at a large number"
SIGNS = "finds the same vectors with other signs"
SPARED = "gives no inverse where none was asked for; PyTorch does"
STRICT = "refuses arguments that PyTorch takes"
STRIDES = "lies in another order in memory"
WORDS = "says it in other words, or names another one of several faults"

DIFFERENT: dict[str, dict[str, str]] = {
    # conv
    "conv1d.padding": {"message": WORDS},
    "conv_transpose1d": {"message": WORDS},
    "conv_transpose3d.input": {"strides": STRIDES},
    "max_pool3d_with_indices_backward": {"error": LENIENT, "strides": STRIDES},
    # copies
    "view_as_complex_copy": {"error": EMPTY},
    # foreach
    "_foreach_pow.ScalarAndTensor": {"values": POLES},
    "_foreach_mm": {"message": WORDS},
    "_foreach_lerp.List": {"message": WORDS},
    "_foreach_lerp_.List": {"message": WORDS},
    "_foreach_lerp_.Scalar": {"message": WORDS},
    "_foreach_clamp_min_.Scalar": {"message": WORDS},
    "_foreach_clamp_min.ScalarList": {"message": WORDS},
    "_foreach_clamp_min_.ScalarList": {"message": WORDS},
    "_foreach_clamp_max_.Scalar": {"message": WORDS},
    "_foreach_clamp_max_.ScalarList": {"message": WORDS},
    "_foreach_maximum_.Scalar": {"message": WORDS},
    "_foreach_maximum_.List": {"message": WORDS},
    "_foreach_maximum_.ScalarList": {"message": WORDS},
    "_foreach_minimum_.Scalar": {"message": WORDS},
    "_foreach_minimum_.ScalarList": {"message": WORDS},
    "_foreach_max": {"message": WORDS},
    # indexing
    "index.Tensor": {"strides": STRIDES},
    "take_along_dim": {"message": WORDS},
    # linalg
    "linalg_cholesky_ex": {"error": EMPTY},
    "cholesky": {"error": EMPTY},
    "linalg_lu_factor_ex": {"error": EMPTY},
    "linalg_lu_factor": {"error": EMPTY},
    "_lu_with_info": {"error": EMPTY},
    "linalg_lu": {"error": EMPTY},
    "lu_unpack": {"error": STRICT},
    "linalg_lu_solve": {"error": EMPTY},
    "_linalg_svd": {"error": EMPTY, "values": SIGNS},
    "linalg_svd": {"error": EMPTY},
    "linalg_eigh": {"error": EMPTY},
    "linalg_eigvalsh": {"error": EMPTY},
    "linalg_eig": {"values": SIGNS},
    "linalg_solve": {"error": EMPTY},
    "linalg_cond": {"error": EMPTY},
    "linalg_matrix_exp": {"values": HALF_OVERFLOW},
    "matrix_exp": {"values": HALF_OVERFLOW},
    # loss
    "binary_cross_entropy": {"error": LENIENT},
    "binary_cross_entropy_backward": {"message": WORDS, "shape": LENIENT},
    "multilabel_margin_loss": {"dtype": EMPTY, "error": EMPTY, "message": WORDS, "shape": EMPTY},
    "nll_loss2d_backward": {"error": LENIENT},
    # matmul
    "linear": {"error": EMPTY},
    "baddbmm": {"error": EMPTY},
    "chain_matmul": {"strides": STRIDES},
    # nn
    "gelu_backward": {"error": LENIENT},
    "mish_backward": {"error": LENIENT},
    "log_sigmoid": {"strides": STRIDES},
    "embedding_renorm_": {"error": STRICT},
    "scaled_dot_product_attention": {"strides": STRIDES},
    "_scaled_dot_product_flash_attention_for_cpu": {"error": LENIENT},
    # norm
    "native_batch_norm": {"error": LENIENT},
    "instance_norm": {"error": STRICT},
    # pointwise
    "lerp.Tensor": {"message": KERNEL},
    "polygamma_": {"message": WORDS},
    "special_logsumexp": {"error": LENIENT},
    "special_round": {"error": DTYPES},
    "special_polygamma": {"values": POLES},
    "special_ndtr": {"message": KERNEL},
    # reduction
    "logsumexp": {"error": LENIENT},
    "dist": {"message": WORDS},
    # scan
    "gradient.array": {"message": WORDS},
    "gradient.tensorarrayint": {"values": HALF_ROUNDING},
    "gradient.tensorarray": {"message": WORDS},
    "gradient.scalarrayint": {"message": WORDS},
    "gradient.scalarrayarray": {"message": WORDS},
    "trapezoid.x": {"message": WORDS},
    "trapz.x": {"message": WORDS},
    # sorting
    "unique_consecutive": {"shape": SPARED},
    "histc": {"message": WORDS},
    "histogram.bins_tensor": {"error": EMPTY},
    # expression
}
"""Kinds: error (raises where PyTorch does not, or the other way round), message, result, dtype, shape, values, strides."""
