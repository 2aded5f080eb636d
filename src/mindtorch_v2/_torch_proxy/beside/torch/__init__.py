"""torch, served by mindtorch_v2: the module that is imported is mindtorch_v2 itself.

This file lies in the distribution `torch` that `python -m mindtorch_v2 torch-wheel` writes, and on the path of processes that
`python -m mindtorch_v2` starts.
"""

try:
    from mindtorch_v2._torch_proxy import install
except ModuleNotFoundError as error:
    if error.name != "mindtorch_v2":
        raise
    raise ImportError(
        f"torch, as {__file__} has it, is served by mindtorch_v2, which this Python does not have. Install mindtorch_v2, "
        "or take this torch away: `pip uninstall torch`, or its folder out of PYTHONPATH.",
        name="torch",
    ) from error

install(__name__)
