# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo.exc, functional stub."""

from __future__ import annotations

_MODULE = "torch._dynamo.exc"


class BackendCompilerFailed(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class FailOnRecompileLimitHit(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class IncorrectUsage(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class InternalTorchDynamoError(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class InvalidBackend(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class RecompileError(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class ResetRequired(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class RestartAnalysis(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class SkipFrame(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class TensorifyScalarRestartAnalysis(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class TorchDynamoException(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class TorchRuntimeError(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class UncapturedHigherOrderOpError(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class Unsupported(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""


class UserError(RuntimeError):
    """An error of torch._dynamo.exc, which mindtorch_v2 never raises."""
