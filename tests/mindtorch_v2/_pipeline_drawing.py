"""Programs drawn from the whole schema: operators with arguments by the strategies of their rules, some of them results of earlier lines.

Each line is run while it is drawn, so that the next one can look for tensors that fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from _pipeline_programs import Program, Step, compiled
from strategies import Case, Operand, Picker, Row, Symbol, draw_case, read_rows
from strategies.operands import show
from strategies.outcomes import ERRORS, is_tensor

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops

WITHOUT_VALUES = ("empty", "new_empty", "_empty")
"""How the names of operators begin whose elements are what the memory held before."""

# Sparse tensors are made at once, and have no storage to compare; collectives want groups of ranks.
ROWS = [
    row
    for row in read_rows()
    if not row.base_name.startswith(WITHOUT_VALUES)
    and row.family not in ("sparse", "collectives")
    and not row.names_a_file
]
POINTWISE = [row for row in ROWS if "pointwise" in row.tags and not row.is_inplace]
WRITING = [row for row in ROWS if row.has("inplace") or row.is_inplace]
WITH_OUT = [row for row in ROWS if row.has("out") and row.returns == ("Tensor",)]
VIEWS = [row for row in ROWS if "view" in row.tags]
RANDOM = [row for row in ROWS if row.is_random]

MOST = 12
"""Names that a program has at a time."""
KEEP_ERRORS = 6
"""Once in how many lines that fail one stays in the program."""
LARGE = (61, 67)
"""More elements than a block of the interpreter has."""


class Named(Symbol):
    """A name of the program as an argument."""

    def show(self, device: str = "cpu") -> str:
        return self.name


class Drawing:
    """A program while it is drawn. device: where its tensors are; gradients: whether some of them ask for gradients."""

    def __init__(self, pick: Picker, device: str, gradients: bool) -> None:
        self.pick = pick
        self.device = device
        self.gradients = gradients
        self.names: dict[str, Any] = {"torch": torch, "ops": ops}
        self.before: list[Step] = []
        self.body: list[Step] = []
        self.steps = self.body
        self.count = 0

    # names

    def fresh(self) -> str:
        """A name that is not taken."""
        self.count += 1
        return f"v{self.count}"

    def tensors(self) -> dict[str, Any]:
        """The tensors that there are, the newest first."""
        found = {name: value for name, value in self.names.items() if is_tensor(value)}
        return dict(reversed(found.items()))

    def some(self, options: Sequence[Any]) -> Any:
        """One of the options, the first ones more often."""
        return options[min(self.pick.integer(0, len(options) - 1), self.pick.integer(0, len(options) - 1))]

    # lines

    def run(self, text: str, makes: tuple[str, ...], uses: Sequence[str], steps: list[Step] | None = None) -> bool:
        """Run a line and add it; of those that fail only some, with the names that it might have changed gone."""
        step = Step(text, makes, tuple(dict.fromkeys(uses)))
        try:
            exec(compiled(text), self.names)
        except ERRORS:
            if self.pick.chance(KEEP_ERRORS):
                self.steps.append(step)
                for name in makes:
                    self.names.pop(name, None)
            return False
        (self.steps if steps is None else steps).append(step)
        return True

    def call(self, text: str, uses: Sequence[str]) -> None:
        """A line that binds what an expression gives: one name, or as many as there are results."""
        try:
            value = eval(compiled_expression(text), self.names)
        except ERRORS:
            if self.pick.chance(KEEP_ERRORS):
                name = self.fresh()
                self.steps.append(Step(f"{name} = {text}", (name,), tuple(uses)))
            return
        if isinstance(value, (tuple, list)) and 0 < len(value) <= 4 and any(is_tensor(item) for item in value):
            names = tuple(self.fresh() for _ in value)
            self.names.update(zip(names, value))
            target = ", ".join(names) + ("," if len(names) == 1 else "")
        else:
            reusable = [n for n in dict.fromkeys(uses) if n in self.names and self.steps is self.body]
            name = self.some(reusable) if reusable and self.pick.chance(8) else self.fresh()
            names, target = (name,), name
            self.names[name] = value
        self.steps.append(Step(f"{target} = {text}", names, tuple(dict.fromkeys(uses))))

    # arguments

    def literal(self, operand: Operand) -> str:
        """The name of a tensor that stood before the block."""
        name = self.fresh()
        text = show(operand, self.device)
        if self.gradients and operand.dtype in ("float32", "float64", "complex128", "bfloat16") and self.pick.boolean():
            text = f"{text}.detach().requires_grad_()"
        self.run(f"{name} = {text}", (name,), (), self.before)
        return name

    def argument(self, value: Any, loose: bool, view: bool = False) -> Any:
        """An argument of a case, or a name for it. loose: whether any tensor will do, whatever its shape and dtype."""
        if isinstance(value, list):
            return [self.argument(item, loose, view) for item in value]
        if not isinstance(value, Operand):
            return value
        pick = self.pick
        there = self.tensors()
        if view:  # of a tensor without elements: numpy does not move its pointer, so the offset is lost
            there = {name: tensor for name, tensor in there.items() if tensor.numel()}
        if loose and there and not pick.chance(5):
            return Named(self.some(list(there)))
        fitting = [
            name
            for name, tensor in there.items()
            if tuple(tensor.shape) == value.shape and str(tensor.dtype) == f"torch.{value.dtype}"
        ]
        if fitting and not pick.chance(4):
            return Named(self.some(fitting))
        return Named(self.literal(value)) if pick.boolean() else value

    def matched(self, case: Case) -> dict[str, Any]:
        """The arguments with tensors of one shape in place of those of the case, as far as there are some."""
        there = self.tensors()
        if not there:
            return {name: self.argument(value, False) for name, value in case.arguments.items()}
        first = there[self.some(list(there))]
        like = [n for n, t in there.items() if t.shape == first.shape and t.dtype.is_floating_point] or list(there)
        near = [n for n, t in there.items() if t.ndim <= first.ndim and all(a in (1, b) for a, b in _aligned(t, first))]
        made: dict[str, Any] = {}
        for name, value in case.arguments.items():
            options = like if not self.pick.chance(4) else near or like
            made[name] = Named(self.some(options)) if isinstance(value, Operand) else value
        return made

    def draw(self, row: Row) -> Case:
        """A case of an operator, nearly always a valid one."""
        pick = Picker(self.pick.integer, valid=not self.pick.chance(8), variety=4)
        return draw_case(pick, row)

    def case(self, row: Row, loose: bool = False) -> Case:
        """A call with names in it."""
        case = self.draw(row)
        if "pointwise" in row.tags and (loose or self.pick.boolean()):
            return Case(row, self.matched(case))
        first = row.parameters[0].name if row.parameters else ""
        return Case(
            row,
            {
                name: self.argument(value, loose and name == first, "view" in row.tags)
                for name, value in case.arguments.items()
            },
        )

    # steps

    def operator(self) -> None:
        """A call of any operator."""
        row = self.pick.choice(ROWS)
        if row.is_inplace:
            self.writing(row)
        else:
            self.call_case(self.case(row, self.pick.chance(3)))

    def random(self) -> None:
        """A call that draws random numbers."""
        row = self.pick.choice(RANDOM)
        if row.is_inplace:
            self.writing(row)
        else:
            self.call_case(self.case(row))

    def pointwise(self) -> None:
        """A pointwise operator on what is there."""
        self.call_case(self.case(self.pick.choice(POINTWISE), True))

    def call_case(self, case: Case) -> None:
        """A call as a function or a method."""
        self.call(case.show(f"ops.{case.row.base_name}", self.device), uses_of(case))

    def writing(self, row: Row | None = None) -> None:
        """An operator in place."""
        row = row or self.pick.choice(WRITING)
        if "pointwise" in row.tags and self.pick.boolean():
            case = Case(row, self.matched(self.draw(row)))
        else:
            case = self.case(row, self.pick.boolean())
        first = row.parameters[0].name
        target = case.arguments.get(first)
        if isinstance(target, Operand):
            target = Named(self.literal(target))
            case = Case(row, {**case.arguments, first: target})
        callee = f"ops.{row.base_name}" + ("" if row.is_inplace else "_")
        if not isinstance(target, Named):
            return
        self.guarded(case.show(callee, self.device), target.name, uses_of(case))

    def guarded(self, text: str, target: str, uses: Sequence[str]) -> None:
        """A line that writes to a tensor. After an error nobody looks at its memory again: a pipeline may have begun to write."""
        kept = len(self.steps)
        if not self.run(text, (), uses) and len(self.steps) > kept:
            self.forget(self.aliases(target))

    def aliases(self, target: str) -> list[str]:
        """The names of tensors that may share memory with one."""
        tensor = self.names[target]
        if tensor.device.type == "meta" or not is_tensor(tensor):
            return list(self.tensors())
        memory = tensor.untyped_storage().data_ptr()
        return [n for n, t in self.tensors().items() if t is tensor or t.untyped_storage().data_ptr() == memory]

    def forget(self, names: Sequence[str]) -> None:
        """A line that lets go of names."""
        for name in names:
            del self.names[name]
        if names:
            self.steps.append(Step(f"del {', '.join(names)}", (), tuple(names)))

    def out(self) -> None:
        """An operator with `out=`."""
        row = self.pick.choice(WITH_OUT)
        case = self.case(row)
        there = self.tensors()
        operands = [there[n] for n in uses_of(case) if n in there]
        shape = operands[0].shape if operands else None
        fitting = [n for n, t in there.items() if t.shape == shape]
        literal = any(isinstance(value, Operand) for value in case.arguments.values())
        if literal or "pointwise" not in row.tags or any(t.shape != shape for t in operands):
            # A buffer that is resized first has nothing to read any more.
            fitting = [n for n in fitting if all(there[n] is not t for t in operands)]
        if fitting and not self.pick.chance(3):
            name = self.some(fitting)
        else:
            first = case.first
            kind = first.dtype if isinstance(first, Operand) else "float32"
            name = self.fresh()
            self.run(f"{name} = torch.empty(0, dtype=torch.{kind}, device={self.device!r})", (name,), ())
        text = case.show(f"ops.{row.base_name}", self.device)[:-1]
        text += f"{'' if text.endswith('(') else ', '}out={name})"
        self.guarded(text, name, [*uses_of(case), name])

    def view(self) -> None:
        """A view by an operator or a subscript."""
        there = {name: tensor for name, tensor in self.tensors().items() if tensor.numel()}
        if not there or self.pick.chance(3):
            self.call_case(self.case(self.pick.choice(VIEWS), True))
            return
        name = self.some(list(there))
        self.call(f"{name}[{self.subscript(there[name])}]", [name])

    def subscript(self, tensor: Any) -> str:
        """What stands in brackets."""
        options = ["...", "None"]
        if tensor.ndim:
            options += ["1:", ":1", "::2", "..., 1:", "..., ::2", "..., None", "..., :-1"]
            options += ["0"] if tensor.shape[0] else []
        return self.pick.choice(options)

    def assignment(self) -> None:
        """A subscript that is assigned to, or an augmented assignment."""
        there = self.tensors()
        if not there:
            return
        name = self.some(list(there))
        like = [n for n, t in there.items() if t.shape == there[name].shape]
        value = self.pick.choice(("2", "0.5", self.some(like), "True", self.some(list(there))))
        uses = [name] + [value] * (value in there)
        if self.pick.boolean():
            self.guarded(f"{name}[{self.subscript(there[name])}] = {value}", name, uses)
        else:
            mark = self.pick.choice(("+=", "*=", "-=", "/="))
            step = f"{name} {mark} {value}"
            kept = len(self.steps)
            if self.run(step, (name,), uses):
                return
            if len(self.steps) > kept:
                self.names.pop(name, None)
                # A name of it that is left may see what the line has begun.
                self.steps.pop()

    def arithmetic(self) -> None:
        """Python's operators with numbers."""
        there = self.tensors()
        if there:
            name, other = self.some(list(there)), self.some(list(there))
            mark = self.pick.choice(("+", "*", "-", "/", "<", "**"))
            number = self.pick.choice(("2", "0.5", "1", "3"))
            text = self.pick.choice((f"{name} {mark} {number}", f"{number} {mark} {name}", f"{name} {mark} {other}"))
            self.call(text, [name, other] if other in text.split() else [name])

    def sync(self) -> None:
        """A line that looks at elements."""
        there = self.tensors()
        if there:
            name = self.some(list(there))
            how = self.pick.choice(
                (
                    "{}.tolist()",
                    "{}.detach().numpy()",
                    "{}.sum().item()",
                    "repr({})",
                    "bool(({} == {}).all())",
                    "[float(x) for x in {}.detach().reshape(-1)[:3]]",
                    "{}.detach().clone().numpy()",
                    "torch.get_rng_state()",
                )
            )
            self.call(how.format(name, name), [name])

    def drop(self) -> None:
        """A name, or several, let go of."""
        there = list(self.names)[2:]
        gone = [name for name in there if self.pick.chance(4)] if len(there) > MOST else []
        if there and not gone:
            gone = [self.some(there)]
        self.forget([name for name in gone if not name.startswith("__")])

    def backward(self) -> None:
        """Gradients of some results."""
        wanted = [n for n, t in self.tensors().items() if t.requires_grad and t.grad_fn is not None]
        if wanted:
            chosen = list(dict.fromkeys(self.some(wanted) for _ in range(2)))
            terms = [f"{n}.abs().sum()" if self.names[n].dtype.is_complex else f"{n}.sum()" for n in chosen]
            self.run(f"({' + '.join(terms)}).backward()", (), chosen)


def _aligned(one: Any, other: Any) -> list[tuple[int, int]]:
    return list(zip(reversed(one.shape), reversed(other.shape)))


def compiled_expression(text: str) -> Any:
    """The code of an expression."""
    return compile(text, "<program>", "eval")


def uses_of(case: Case) -> list[str]:
    """The names in the arguments."""
    found: list[str] = []
    for value in case.arguments.values():
        found += [item.name for item in (value if isinstance(value, list) else [value]) if isinstance(item, Named)]
    return found


KINDS = (
    *("pointwise",) * 6,
    *("operator",) * 7,
    *("arithmetic",) * 2,
    *("writing",) * 4,
    *("view",) * 3,
    *("out",) * 2,
    *("assignment",) * 2,
    "sync",
    "drop",
    "random",
)


def draw_program(pick: Picker, length: int) -> Program:
    """A program of about `length` lines."""
    device = "meta" if pick.chance(24) else "cpu"
    drawing = Drawing(pick, device, gradients=pick.chance(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        drawing.steps = drawing.before
        first = POINTWISE[0]
        for _ in range(pick.integer(1, 3)):
            case = drawing.draw(pick.choice(POINTWISE))
            first = next((v for v in case.arguments.values() if isinstance(v, Operand)), None)
            if first is not None:
                drawing.literal(first)
        if pick.chance(8):
            name = drawing.fresh()
            drawing.run(
                f"{name} = (torch.arange({LARGE[0] * LARGE[1]}, device={device!r}) % 97 / 16).reshape{LARGE}",
                (name,),
                (),
            )
        drawing.steps = drawing.body
        for _ in range(length):
            getattr(drawing, pick.choice(KINDS))()
            if len(drawing.names) > MOST + 3:
                drawing.drop()
        after: list[Step] = []
        if drawing.gradients:
            drawing.steps = after if pick.boolean() else drawing.body
            drawing.backward()
        drawing.steps = after
        if pick.chance(3):
            drawing.assignment()
    kind = pick.integer(0, 11)
    options = {8: "fuse=False", 9: f"max_ops={pick.integer(1, 6)}", 10: f"max_bytes={pick.choice((0, 64, 4096))}"}
    inner = (0, 0)
    if pick.chance(4) and drawing.body:
        start = pick.integer(0, len(drawing.body) - 1)
        inner = (start, pick.integer(start, len(drawing.body)))
    return Program(tuple(drawing.before), tuple(drawing.body), tuple(after), options.get(kind, ""), inner)
