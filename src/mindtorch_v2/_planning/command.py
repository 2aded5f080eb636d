"""`python -m mindtorch_v2 plan`: the plan of a transformers model, from its configuration alone."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

DESCRIPTION = """Parameters, FLOPs, memory traffic and the peak of live memory of a transformers model, from its configuration: nothing is downloaded, allocated or computed."""
EPILOG = """examples:
  python -m mindtorch_v2 plan --model BertConfig --batch 8 --seq 128
  python -m mindtorch_v2 plan --model LlamaConfig --set num_hidden_layers=80 hidden_size=8192 --head CausalLM --backward --json
  python -m mindtorch_v2 plan --model path/to/config.json --dtype bfloat16
  python -m mindtorch_v2 plan --model LlamaConfig --head CausalLM --dtype bfloat16 --backward --mesh dp=8,tp=8"""


class CommandError(Exception):
    """Something in the arguments that a user can mend; its text is the message."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        "python -m mindtorch_v2 plan",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--model",
        required=True,
        help="a configuration class of transformers (BertConfig), or a config.json or its folder",
    )
    made.add_argument(
        "--head",
        default="",
        help="CausalLM, SequenceClassification, ...: the class AutoModelFor<head>; default AutoModel",
    )
    made.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="fields of the configuration; values are JSON"
    )
    made.add_argument("--batch", type=_positive, default=1, help="batch size (1)")
    made.add_argument("--seq", type=_positive, default=128, help="tokens, or samples of sound, per sequence (128)")
    made.add_argument("--dtype", default="float32", help="of parameters and floating inputs (float32)")
    made.add_argument(
        "--backward", action="store_true", help="plan a training step: forward in training mode, and backward"
    )
    made.add_argument(
        "--mesh",
        metavar="AXIS=RANKS,...",
        help="plan one rank of many: dp, fsdp and tp, as dp=8,tp=8; --batch is a rank's",
    )
    made.add_argument("--optimizer", default="adamw", help="what keeps state: adamw, adam, momentum, sgd, none (adamw)")
    made.add_argument("--bandwidth", type=float, default=12.5e9, help="bytes per second that a rank sends (12.5e9)")
    made.add_argument("--latency", type=float, default=10e-6, help="seconds of a message (10e-6)")
    made.add_argument("--flops", type=float, default=100e12, help="operations per second of a rank (100e12)")
    made.add_argument("--depth", type=int, default=2, help="how deep the table of modules goes (2)")
    made.add_argument("--html", metavar="FILE", help="write a page with drawings too, which needs no network")
    made.add_argument("--json", action="store_true", help="print JSON in place of tables")
    return made


def main(arguments: list[str]) -> int:
    """Print the plan that the arguments ask for; 1 with a message when it cannot be made."""
    options = parser().parse_args(arguments)
    try:
        made = _plan(options)
    except CommandError as error:
        print(f"python -m mindtorch_v2 plan: {error}", file=sys.stderr)
        return 1
    if options.html:
        try:
            Path(options.html).write_text(made.to_html(), encoding="utf-8")
        except OSError as error:
            print(f"python -m mindtorch_v2 plan: --html: {error}", file=sys.stderr)
            return 1
    print(made.to_json() if options.json else made.table(depth=options.depth))
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _plan(options: argparse.Namespace) -> Any:
    from .._torch_proxy import install

    install()
    try:
        import transformers
    except ImportError as error:
        raise CommandError("needs transformers: pip install transformers") from error

    import mindtorch_v2 as torch

    from .run import plan

    dtype = getattr(torch, options.dtype, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise CommandError(f"--dtype: {options.dtype!r} is no floating-point dtype")
    config = _configured(_configuration(options.model, transformers), options.set)
    name = f"AutoModelFor{options.head}" if options.head else "AutoModel"
    factory = getattr(transformers, name, None)
    if factory is None:
        raise CommandError(f"--head: transformers has no {name}")
    try:
        with torch.device("meta"):
            model = factory.from_config(config, dtype=dtype)
    except ValueError as error:
        raise CommandError(f"{name} takes no {type(config).__name__}: {str(error).splitlines()[0]}") from error
    inputs = _inputs(model, config, options, torch, dtype)
    model.train(options.backward)
    try:
        with torch.set_grad_enabled(options.backward):
            return plan(model, backward=options.backward, **_mesh(options), **inputs)
    except (RuntimeError, ValueError, IndexError) as error:
        raise CommandError(f"{type(model).__name__}: {error}") from error


def _mesh(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `plan` for many ranks; none where one is planned."""
    if options.mesh is None:
        return {}
    from .mesh import Machine, parse_mesh

    machine = Machine(options.bandwidth, options.latency, options.flops)
    return {"mesh": parse_mesh(options.mesh), "optimizer": options.optimizer, "machine": machine}


def _configuration(name: str, transformers: Any) -> Any:
    path = Path(name)
    if path.suffix == ".json" or path.is_dir():
        if not path.exists():
            raise CommandError(f"--model: no file {name!r}")
        try:
            return transformers.AutoConfig.from_pretrained(str(path), local_files_only=True)
        except (ValueError, OSError) as error:
            raise CommandError(
                f"--model: {name!r} is no configuration of transformers: {str(error).splitlines()[0]}"
            ) from error
    cls = getattr(transformers, name, None)
    if not (isinstance(cls, type) and issubclass(cls, transformers.PretrainedConfig)):
        raise CommandError(f"--model: transformers has no configuration class {name!r}")
    return cls()


def _configured(config: Any, settings: list[str]) -> Any:
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not hasattr(config, name):
            raise CommandError(f"--set: {setting!r} is no NAME=VALUE of {type(config).__name__}")
        try:
            setattr(config, name, json.loads(text))
        except json.JSONDecodeError:
            setattr(config, name, text)
    return config


def _inputs(model: Any, config: Any, options: argparse.Namespace, torch: Any, dtype: Any) -> dict[str, Any]:
    """What the model's forward needs: tokens, an image or sound, by the name of its main input."""
    batch, length = options.batch, options.seq

    token = 2 if getattr(config, "pad_token_id", None) == 1 else 1

    def tokens() -> Any:  # with values: models look for padding
        return torch.full((batch, length), token)

    main = model.main_input_name
    if main == "input_ids":
        found = {"input_ids": tokens()}
    elif main == "pixel_values":
        side = config.image_size if isinstance(config.image_size, (list, tuple)) else (config.image_size,) * 2
        found = {main: torch.empty((batch, config.num_channels, *side), dtype=dtype, device="meta")}
    elif main == "input_values":
        found = {main: torch.empty((batch, length), dtype=dtype, device="meta")}
    elif main == "input_features":
        bins = getattr(config, "num_mel_bins", None) or getattr(config, "feature_size", 80)
        frames = 2 * config.max_source_positions if hasattr(config, "max_source_positions") else length
        found = {main: torch.empty((batch, bins, frames), dtype=dtype, device="meta")}
    else:
        raise CommandError(
            f"{type(model).__name__} takes {main!r}, which this command cannot make; call mindtorch_v2.plan with your inputs"
        )
    if getattr(config, "is_encoder_decoder", False):
        found["decoder_input_ids"] = tokens()
    return found
