# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._VF, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._VF"
_BECAUSE = "the functions of torch serve"
gru = import_only_function("gru", _MODULE, _BECAUSE, NotImplementedError)
gru_cell = import_only_function("gru_cell", _MODULE, _BECAUSE, NotImplementedError)
lstm = import_only_function("lstm", _MODULE, _BECAUSE, NotImplementedError)
lstm_cell = import_only_function("lstm_cell", _MODULE, _BECAUSE, NotImplementedError)
rnn_relu = import_only_function("rnn_relu", _MODULE, _BECAUSE, NotImplementedError)
rnn_tanh = import_only_function("rnn_tanh", _MODULE, _BECAUSE, NotImplementedError)
