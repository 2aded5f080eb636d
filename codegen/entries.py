"""Makes operators of located YAML: the shape of an entry, field by field.

What a field may look like is checked here; what it may mean (does that rule exist?) is checked by `codegen.checks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import words
from .derived import UNARY, unary
from .expressions import ExpressionError, parse_call, parse_formula, tuple_length
from .loader import Mapping, Node, Scalar, Sequence
from .model import VALUES, Block, Call, Derivative, Kernel, Location, NameUse, Op, Signature, Work
from .problems import Problem, did_you_mean
from .signature import SignatureError, parse_signature

FIELDS = words.names(words.FIELDS)
_GRADIENT_NAMES = ("grad", "grads", "given", "needs")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_RESULT = re.compile(r"result(\d*)")


def read_entries(tree: Node | None, file: str, problems: list[Problem]) -> tuple[Op, ...]:
    """The operators of one family file. An entry with an unreadable signature is reported and left out."""
    if tree is None:
        return ()
    if not isinstance(tree, Sequence):
        problems.append(Problem(tree.location, "", "a schema file must be a list of entries"))
        return ()
    family = file.rpartition("/")[2].removesuffix(".yaml")
    ops = (_Entry(node, family, problems).op() for node in tree)
    return tuple(op for op in ops if op is not None)


class _Entry:
    """One entry while it is read."""

    def __init__(self, node: Node, family: str, problems: list[Problem]) -> None:
        self.node = node
        self.family = family
        self.problems = problems
        self.subject = ""

    def problem(self, location: Location, message: str) -> None:
        self.problems.append(Problem(location, self.subject, message))

    def op(self) -> Op | None:
        if not isinstance(self.node, Mapping):
            self.problem(self.node.location, "an entry must be a mapping that starts with 'func'")
            return None
        entry = self.node
        func = entry.get("func")
        if func is not None and isinstance(func, Scalar):
            match = re.match(r"\s*([A-Za-z_]\w*(?:\.\w+)?)", func.text)
            self.subject = match[1] if match else ""
        for key, _ in entry:
            if key.text not in FIELDS:
                self.problem(key.location, f"unknown field '{key.text}'{did_you_mean(key.text, FIELDS)}")
        signature = self.signature(entry, func)
        if signature is None:
            return None
        fields: dict[str, object] = {
            "operators": self.names(entry, "operators"),
            "aliases": self.names(entry, "aliases"),
            "mutates": self.names(entry, "mutates"),
            "tags": self.names(entry, "tags"),
            "out": self.names(entry, "out"),
            "meta": self.call(entry.get("meta"), "meta"),
            "vmap": self.call(entry.get("vmap"), "vmap"),
            "grad": self.grad(entry.get("grad"), signature),
            "kernels": self.kernels(entry.get("kernels")),
            "sparse": self.sparse(entry.get("sparse")),
            "flops": self.work(entry.get("flops")),
            "block": self.block(entry.get("block")),
            "sample": self.sample(entry.get("sample")),
            "copy": self.flag(entry.get("copy"), "copy"),
            "foreach": self.foreach(entry.get("foreach"), signature),
        }
        if entry.get("variants") is not None:
            fields["variants"] = self.names(entry, "variants")
        for name in ("namespace", "composite", "fallback", "fast", "node", "differs", "missing"):
            text = self.text(entry.get(name), name)
            if text is not None and name in ("composite", "fast") and not _FUNCTION.fullmatch(text):
                self.problem(entry.get(name).location, f"'{text}' is no function name")  # type: ignore[union-attr]
            elif text is not None:
                fields[name] = text
        locations = dict(_places(entry))
        return Op(signature, self.family, entry.location, locations=locations, **fields)  # type: ignore[arg-type]

    def signature(self, entry: Mapping, func: Node | None) -> Signature | None:
        if func is None:
            self.problem(entry.location, "an entry must have a 'func'")
            return None
        if not isinstance(func, Scalar):
            self.problem(func.location, "'func' must be a signature")
            return None
        return self.read_signature(func)

    def read_signature(self, node: Node) -> Signature | None:
        if not isinstance(node, Scalar):
            self.problem(node.location, "must be a signature")
            return None
        try:
            return parse_signature(node.text)
        except SignatureError as error:
            self.problem(node.at(error.column), f"bad signature: {error.message}")
            return None

    def text(self, node: Node | None, name: str) -> str | None:
        if node is None:
            return None
        if not isinstance(node, Scalar) or not node.text.strip():
            self.problem(node.location, f"'{name}' must be a text")
            return None
        return node.text

    def flag(self, node: Node | None, name: str) -> bool:
        if node is None:
            return False
        if not isinstance(node, Scalar) or not isinstance(node.value, bool):
            self.problem(node.location, f"'{name}' must be true or false")
            return False
        return node.value

    def foreach(self, node: Node | None, base: Signature) -> tuple[Signature, ...]:
        """`unary`, or the signatures of the forms that take lists of tensors."""
        if node is None:
            return ()
        if isinstance(node, Scalar) and node.text == UNARY:
            return (unary(base),)
        found = (self.read_signature(item) for item in (node.items if isinstance(node, Sequence) else (node,)))
        return tuple(signature for signature in found if signature is not None)

    def names(self, entry: Mapping, name: str) -> tuple[str, ...]:
        """A list of names, or a single name."""
        node = entry.get(name)
        if node is None:
            return ()
        items = node.items if isinstance(node, Sequence) else (node,)
        found: list[str] = []
        for item in items:
            if not isinstance(item, Scalar) or not item.text.strip():
                self.problem(item.location, f"'{name}' must be a list of names")
            elif item.text in found:
                self.problem(item.location, f"'{item.text}' stands twice in '{name}'")
            else:
                found.append(item.text)
        return tuple(found)

    def call(self, node: Node | None, name: str) -> Call | None:
        if node is None:
            return None
        if not isinstance(node, Scalar):
            self.problem(node.location, f"'{name}' must be a call like 'name(self)'")
            return None
        try:
            return parse_call(node)
        except ExpressionError as error:
            self.problem(node.at(error.offset), f"{name}: {error.message}")
            return None

    def work(self, node: Node | None) -> Work | None:
        return None if node is None else read_work(node, self.subject, self.problems)

    def kernels(self, node: Node | None) -> tuple[Kernel, ...]:
        if node is None:
            return ()
        if not isinstance(node, Mapping) or not node.entries:
            self.problem(node.location, "'kernels' must map devices to functions")
            return ()
        return tuple(kernel for key, value in node for kernel in self.kernel(key.text, value))

    def sparse(self, node: Node | None) -> tuple[Kernel, ...]:
        """`values`, or functions by layout."""
        if node is None:
            return ()
        if isinstance(node, Scalar) and node.text == VALUES:
            return tuple(Kernel(layout, VALUES, None, node.location) for layout in ("coo", "csr", "csc"))
        if not isinstance(node, Mapping) or not node.entries:
            self.problem(node.location, f"'sparse' must map layouts to functions, or be '{VALUES}'")
            return ()
        found: list[Kernel] = []
        for key, value in node:
            if isinstance(value, Scalar) and re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", value.text):
                found.append(Kernel(key.text, value.text, None, value.location))
            else:
                self.problem(value.location, f"sparse.{key.text} must be 'module.function', or '{VALUES}'")
        return tuple(found)

    def kernel(self, device: str, node: Node) -> Iterator[Kernel]:
        if isinstance(node, Sequence):
            for item in node:
                yield from self.kernel(device, item)
            return
        if isinstance(node, Scalar) and "(" not in node.text:
            if _FUNCTION.fullmatch(node.text):
                yield Kernel(device, node.text, None, node.location)
            else:
                self.problem(node.location, f"'{node.text}' is no function name")
            return
        call = self.call(node, f"kernels.{device}")
        if call is not None:
            yield Kernel(device, call.function, call, node.location)

    def block(self, node: Node | None) -> tuple[Block, ...]:
        """An expression, or a list of them; `expression: {parameter: value}` says when one holds."""
        if node is None:
            return ()
        found: list[Block] = []
        for item in node.items if isinstance(node, Sequence) else (node,):
            pairs = tuple(item) if isinstance(item, Mapping) else ((item, None),)
            for key, conditions in pairs:
                if not isinstance(key, Scalar) or not (conditions is None or isinstance(conditions, Mapping)):
                    self.problem(item.location, "'block' must be expressions, or map them to {parameter: value}")
                    continue
                values = () if conditions is None else tuple((k.text, _plain(v)) for k, v in conditions)
                found.append(Block(key.text, values, key.location, key.at))
        return tuple(found)

    def sample(self, node: Node | None) -> dict[str, object]:
        if node is None:
            return {}
        if not isinstance(node, Mapping):
            self.problem(node.location, "'sample' must map arguments to hints")
            return {}
        return {key.text: _plain(value) for key, value in node}

    def grad(self, node: Node | None, signature: Signature) -> tuple[Derivative, ...] | str | None:
        if node is None:
            return None
        if isinstance(node, Scalar) and node.text == "none":
            return "none"
        if not isinstance(node, Mapping) or not node.entries:
            self.problem(node.location, "'grad' must map inputs to formulas, or be 'none'")
            return None
        found = (self.derivative(key, value, signature) for key, value in node)
        return tuple(derivative for derivative in found if derivative is not None)

    def derivative(self, key: Scalar, node: Node, signature: Signature) -> Derivative | None:
        inputs = tuple(part.strip() for part in key.text.split(","))
        if not isinstance(node, Scalar):
            self.problem(node.location, f"grad of '{key.text}' must be a formula; quote it when it has brackets")
            return None
        try:
            uses = parse_formula(node)
            length = tuple_length(node.text)
        except ExpressionError as error:
            self.problem(node.at(error.offset), f"grad of '{key.text}': {error.message}")
            return None
        if length is not None and length != len(inputs):
            self.problem(node.location, f"grad of '{key.text}': {length} gradients for {len(inputs)} inputs")
        return analyse(inputs, node.text, uses, signature, key.location)


def analyse(
    inputs: tuple[str, ...],
    formula: str,
    uses: tuple[NameUse, ...],
    signature: Signature,
    location: Location | None = None,
) -> Derivative:
    """Sort the names of a formula by what must be saved for them."""
    whole = {use.name for use in uses if use.attribute is None}
    saved_inputs: dict[str, None] = {}
    saved_attributes: dict[tuple[str, str], None] = {}
    saved_results: dict[int, None] = {}
    scalars: dict[str, None] = {}
    functions: dict[str, None] = {}
    for use in uses:
        argument = signature.argument(use.name)
        number = result_number(use.name, signature) if argument is None else None
        if argument is not None and not argument.is_tensor_like:
            scalars[use.name] = None
        elif argument is not None or number is not None:
            if use.name not in whole and use.attribute is not None:
                saved_attributes[use.name, use.attribute] = None
            elif argument is not None:
                saved_inputs[use.name] = None
            elif number is not None:
                saved_results[number] = None
        elif use.name not in _GRADIENT_NAMES and not _RESULT.fullmatch(use.name):
            functions[use.name] = None
    return Derivative(
        inputs,
        formula,
        uses,
        tuple(saved_inputs),
        tuple(saved_attributes),
        tuple(saved_results),
        tuple(scalars),
        tuple(functions),
        location,
    )


def read_work(node: Node, subject: str, problems: list[Problem]) -> Work | None:
    """A formula for floating-point operations; what is none is reported."""
    if not isinstance(node, Scalar):
        problems.append(Problem(node.location, subject, "'flops' must be a formula like 2 * numel(out)"))
        return None
    try:
        return Work(node.text, parse_formula(node), node.location)
    except ExpressionError as error:
        problems.append(Problem(node.at(error.offset), subject, f"flops: {error.message}"))
        return None


def result_number(name: str, signature: Signature) -> int | None:
    """Which result a name of a formula means: `result`, `result1`, or the name of a return."""
    if name in signature.return_names:
        return signature.return_names.index(name)
    match = _RESULT.fullmatch(name)
    if match is None:
        return None
    if not match[1]:
        return 0 if len(signature.returns) == 1 else None
    return int(match[1]) if int(match[1]) < len(signature.returns) else None


def _places(entry: Mapping) -> Iterator[tuple[str, Location]]:
    """Where the values of an entry stand: `meta`, and `variants.method`, `kernels.cpu` of its items and keys."""
    for key, value in entry:
        yield key.text, value.location
        if isinstance(value, Sequence):
            yield from ((f"{key.text}.{item.text}", item.location) for item in value if isinstance(item, Scalar))
        elif isinstance(value, Mapping):
            for inner, _ in value:
                # One key of `grad` may name several inputs.
                for match in re.finditer(r"[^,\s]+", inner.text):
                    yield f"{key.text}.{match[0]}", inner.at(match.start())


def _plain(node: Node) -> object:
    """The value of a node without its places."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [_plain(item) for item in node]
    return {key.text: _plain(value) for key, value in node}
