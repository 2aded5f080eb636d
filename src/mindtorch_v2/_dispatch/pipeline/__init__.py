"""Pipeline mode: operators are recorded and run when their results are needed.

`context` is what users see; `recorder` takes calls from the dispatcher; `values` is what it keeps of them; `schedule` decides what a flush runs and
runs it; `fusion` runs chains of pointwise operators block by block; `report` explains.
"""

from .context import Pipeline, current_pipeline, pipeline

pipeline_context = pipeline
"""The name of `torch.pipeline` at this floor."""

__all__ = ["Pipeline", "current_pipeline", "pipeline", "pipeline_context"]
