"""The words that an entry may be written with, each with what it says and an example.

This table is read by the checks, the manual (schema/README.md) and the JSON Schema that editors complete from; a word that is not here is an
author's error. What a word does stands where it is read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """One word: what it says, in the words of the manual, and how it is written."""

    name: str
    meaning: str
    example: str = ""


FIELDS = (
    Word(
        "func",
        "The signature, in PyTorch's grammar: `name.overload(arguments) -> results`.",
        "func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    ),
    Word(
        "variants",
        "How it is called. Without the field: as a function only.",
        "variants: [function, method, inplace, out]",
    ),
    Word("operators", "Python operators of Tensor that run it.", "operators: [__add__, __radd__, __iadd__]"),
    Word("aliases", "Further public names of all its forms.", "aliases: [subtract]"),
    Word("namespace", "Where the function stands, if not in `torch`.", "namespace: linalg"),
    Word(
        "meta",
        "The rule that says shape, dtype and strides of the results, and refuses wrong arguments; see below.",
        "meta: elementwise(self, other, alpha=alpha)",
    ),
    Word("grad", "A formula for each differentiable input, or `none`; see below.", 'grad: {self: "grad * cos(self)"}'),
    Word(
        "node",
        "The printed name of its node in the graph, where it is not the operator's with PyTorch's spelling and a 0.",
        "node: MaxBackward1",
    ),
    Word("kernels", "What computes it, by device; see below.", "kernels: {cpu: numpy.sin, npu: aclnnSin(self)}"),
    Word(
        "fallback",
        "Why it has no kernel on NPUs, where its cpu kernel computes then, with a warning; see below.",
        "fallback: no_fft",
    ),
    Word(
        "composite",
        "In place of `meta` and `kernels`: the function of `src/mindtorch_v2/_composite/` that makes it of other operators.",
        "composite: reduction.var_dim",
    ),
    Word(
        "sparse",
        "What computes it of sparse tensors, by layout; see below.",
        "sparse: {coo: products.mm, csr: products.mm}",
    ),
    Word("copy", "A view has a form that copies, with `out=`: `expand_copy` of `expand`.", "copy: true"),
    Word(
        "foreach",
        "The forms that take lists of tensors: `unary` for `_foreach_abs` and `_foreach_abs_`, or their signatures.",
        "foreach: unary",
    ),
    Word("mutates", "The argument that the kernel changes in place.", "mutates: self"),
    Word(
        "fast",
        "A short cut for plain arguments: `ufunc` (that of the cpu kernel), a ufunc by name, `block` (its loop in C), or a kernel that shapes its result "
        "itself.",
        "fast: numpy.add",
    ),
    Word(
        "block",
        "One element of the result as an expression, of which loops in C are made, and the cpu kernel where none is named; see below.",
        "block: [self + other, self + alpha * other]",
    ),
    Word(
        "vmap",
        "What it does to a whole batch of examples, where neither its rule nor its kind says so: a call of a function of `src/mindtorch_v2/func/whole/`; "
        "`each()`: one by one.",
        "vmap: product(self, mat2, 2, 2)",
    ),
    Word("tags", "What is said about it in one word; see below.", "tags: [pointwise, commutative]"),
    Word(
        "out", "How the `out=` form treats a buffer that is not as the result; see below.", "out: [exact, contiguous]"
    ),
    Word("flops", "Floating-point operations of a call, where they are not its rule's.", "flops: 2 * numel(out)"),
    Word(
        "sample", "Values that the property tests draw, by argument; see below.", "sample: {other: nonzero, dim: dim}"
    ),
    Word("differs", "Why the signature is not PyTorch's.", "differs: takes one tensor for a list"),
    Word(
        "missing",
        "In place of everything: why PyTorch's operator is not here; a call says so.",
        "missing: needs LAPACK",
    ),
)

VARIANTS = (
    Word("function", "`torch.add(x, y)`"),
    Word("method", "`x.add(y)`"),
    Word("inplace", "`x.add_(y)`"),
    Word("out", "`torch.add(x, y, out=z)`"),
)

NAMESPACES = (
    Word("torch", "`torch.name`"),
    Word("nn", "`torch._C._nn.name`, which `torch.nn.functional` wraps"),
    Word("linalg", "`torch.linalg.name`, of an operator called `linalg_name`"),
    Word("special", "`torch.special.name`, of an operator called `special_name`"),
    Word("fft", "`torch.fft.name`, of an operator called `fft_name`"),
    Word("torchvision", "`torch.ops.torchvision.name`, of an operator called `torchvision_name`"),
    Word("_c10d_functional", "`torch.ops._c10d_functional.name`, of an operator called `_c10d_functional_name`"),
    Word(
        "_c10d_functional_autograd",
        "`torch.ops._c10d_functional_autograd.name`, of an operator called `_c10d_functional_autograd_name`",
    ),
    Word("image", "`torch.ops.image.name`, of an operator called `image_name`"),
    Word("npu", "`torch.ops.npu.name`, as torch_npu has it"),
)

FALLBACKS = (
    Word("no_function", "aclnn has no such function, nor those that it could be composed of"),
    Word("no_fft", "aclnn has no Fourier transforms"),
    Word("no_decomposition", "aclnn has no such decomposition of matrices, and no solver that stands on one"),
    Word("no_information", "aclnn's function does not say which matrix it failed on, as PyTorch's does"),
    Word("library", "it is the entry to a library of the CPU, which programs reach through other operators"),
    Word("no_distribution", "aclnn draws no numbers of this distribution"),
    Word("no_special", "aclnn has no such special function"),
    Word("not_bound", "aclnn may have it, but nothing binds it"),
    Word("probe", "it is a probe of the dispatcher, which has nothing to compute on a device"),
)

SPARSE = (
    Word("coo", "One of its tensors has the layout `torch.sparse_coo`, and none is compressed."),
    Word("csr", "One of its tensors has the layout `torch.sparse_csr`."),
    Word("csc", "One of its tensors has the layout `torch.sparse_csc`, and none before it is of rows."),
    Word("strided", "All its tensors are dense: it makes sparse ones, or refuses them."),
)

TAGS = (
    # What may stand for a tensor
    Word(
        "pointwise",
        "An element of the result depends on the elements at its place alone; a number may stand for any tensor.",
    ),
    Word("numbers", "A number may stand for any tensor, though it is not pointwise."),
    Word("numbers_as_tensors", "`torch.ops` and modes see the overload of tensors though a number stands for one."),
    Word("numbers_first", "A number may stand for the first tensor when the second is one: `torch.sub(1, x)`."),
    Word("tensors", "Tensors only, though it is pointwise."),
    Word("wrapped_numbers", "A number may stand for any tensor but the first, and is a tensor of its own dtype then."),
    Word(
        "factors_first",
        "Its keyword-only factors may stand before the tensors that they multiply, as long ago; that warns.",
    ),
    Word("one_for_all", "A list of one integer stands for as many as the signature says, as the integer itself does."),
    Word("commutative", "Its reflected Python operator is the operator itself."),
    Word("linear", "Linear in all of its tensors together: what it makes of terms of sums are terms of a sum."),
    Word("multilinear", "Linear in each of its tensors, while the others stay as they are."),
    # Where results come from
    Word("view", "The result is a view of the first argument."),
    Word("detach", "A view without history, whose changes in place are still seen by versions."),
    Word("creation", "It makes tensors of no tensor's values; one that nobody reads need not be made."),
    Word("conversion", "It changes dtype or device, or copies from a tensor of another one."),
    Word("random", "It draws numbers; property tests compare geometry, not values."),
    Word("nondeterministic_seeded", "It moves the generator on, so that its calls keep their order."),
    Word("uninitialized", "What it makes is filled while deterministic algorithms are asked for."),
    Word("data_dependent", "The shape of the result depends on values: the meta device refuses it."),
    Word(
        "by_rows",
        "It works along `dim`, or the last dimensions that `normalized_shape` says, and cannot fail whatever its elements are: what some rows give does not depend on others, and has the "
        "same bits without them.",
    ),
    Word(
        "recomputed",
        "It costs little: a large result that nodes alone hold is computed again in the backward pass, from what its own node saved. Its derivative reads all "
        "arguments that the result depends on.",
    ),
    Word("lookup", "It reads of its first argument only what it gives back, which counts for the bytes it moves."),
    Word("product", "Its work is that of matrix products, which `torch.utils.flop_counter` counts."),
    Word("product_of_shapes", "As `product`; the shapes say as which of PyTorch's products it counts."),
    Word("product_on_devices", "As `product`, but on a CPU, where PyTorch's counter leaves it out."),
    Word("convolution", "As `product`; it counts as PyTorch's `convolution`."),
    Word("any_device", "Its tensors may be on different devices."),
    Word("updates_statistics", "In training it writes the running statistics that it is given."),
    # Batches of `vmap`
    Word(
        "draws",
        "A composite that draws numbers, unless `train` or `training` says no: `vmap` is told whether all examples draw the same.",
    ),
    Word("draws_by_rows", "Inside `vmap` it draws for one example after the other."),
    Word("draws_refused", "Inside `vmap` it cannot be called."),
    Word("draws_apart", "Inside `vmap` a batch's examples cannot draw the same numbers."),
    # Changes in place
    Word("inplace_function", "The in-place form is a function too: `torch.relu_(x)`."),
    Word("real_result", "In place it refuses complex tensors, of which it makes real ones."),
    Word("fills", "In place it may write elements that share memory: each gets one of the values meant for it."),
    Word("warns_expanded", "In place on elements that share memory it warns that this is deprecated, and fills them."),
    Word(
        "overlap",
        "In place and with `out=`, an input that shares part of the written memory is refused, as for `pointwise`.",
    ),
    Word("apart", "In place and with `out=`, no input but the first may be in the written memory at all."),
    # Mixed precision
    Word("autocast_lower", "Under autocast it computes in the lower precision."),
    Word("autocast_float32", "Under autocast it computes in float32."),
    Word("autocast_promote", "Under autocast it computes in the widest dtype of its arguments."),
)

OUT = (
    # Which dtypes the buffer may have. Without one of these: those that the result can be cast to.
    Word("exact", "The result's dtype; else `Expected out tensor to have dtype ...`."),
    Word("castable", "What the result can be cast to; else `NAME: Expected result to be safely castable ...`."),
    Word("castable_linalg", "`castable` of `linalg.NAME`."),
    Word("castable_torch", "`castable` of `torch.linalg.NAME`."),
    Word("castable_eigenvalues", "`castable_torch` that speaks of eigenvalues."),
    Word("norm", "The result's dtype, as norms word it."),
    Word("multi_dot", "The result's dtype, as `multi_dot` words it."),
    Word("as_input", "The result's dtype; else `Expected the dtype for input and out to match ...`."),
    Word("bool", "bool; else `... only supports bool tensor for result ...`."),
    Word("boolean", "bool; else `... does not support non-boolean outputs.`"),
    Word("any_dtype", "Any dtype."),
    Word("long", "int64; else `... expects Long tensor out ...`."),
    Word("scan", "The result's dtype; else `expected scalar_type ...`."),
    Word("joined", "One that the result can be cast to; else a TypeError, as cat says it."),
    Word("normal", 'A floating one; else `"normal_kernel_cpu" not implemented for ...`.'),
    Word(
        "nansum",
        'One that the result (with `dtype`: the input) can be cast to; else `"nansum_cpu" not implemented for ...`.',
    ),
    Word("requires", "The result's dtype, in place too; else `the output given to NAME has dtype ...`."),
    Word("frexp", "The result's dtype; else `torch.NAME() expects RESULT to have ...`."),
    Word(
        "histogram",
        "The result's dtype; else `torch.NAME: input tensor and RESULT tensor should have the same dtype ...`.",
    ),
    Word("results", "The result's dtype; else `expected scalar type ... for RESULT output`."),
    Word("alike", "The result's dtype; else `NAME is not yet implemented for ...`."),
    Word("scalar_type", "The result's dtype; else `Expected object of scalar type ...`."),
    Word("quantile", "The result's dtype; else `quantile() out tensor must be same dtype ...`."),
    Word("nonzero", "The result's dtype; else `NAME: Expected out tensor to have scalar type ...`."),
    Word("absolute", "The result's dtype or its complex one; else `Found dtype ...`, or that it cannot be cast."),
    Word("int_mm", "int32; else `int_mm_out_cpu: Expected result dtype ...`."),
    # What else
    Word("contiguous", "A buffer that is resized becomes contiguous, whatever strides the result has."),
    Word("counted", "A buffer that is resized is warned of by its number of elements; other factories do not warn."),
    Word("any_shape", "A buffer with as many elements keeps its shape."),
    Word("distinct", "The buffer may not be one of the inputs."),
    Word("given", "The composite's function takes the buffer as `out` and writes into it."),
    Word("dtype", "Without a `dtype` argument the buffer's dtype is taken for it."),
)

HINTS = (
    Word("any", "Whatever the dtype holds."),
    Word("positive", "Values above 0."),
    Word("negative", "Values below 0."),
    Word("nonnegative", "Values of at least 0."),
    Word("nonzero", "No zero."),
    Word("unit", "Values within (-1, 1)."),
    Word("probability", "Values within [0, 1]."),
    Word("above_one", "Values above 1."),
    Word("small", "Integers of a few units."),
    Word("distinct", "No two equal."),
    Word("finite", "Neither infinities nor NaN."),
    Word("integer", "A tensor of integers."),
    Word("floating", "A tensor of floating-point numbers."),
    Word("boolean", "A tensor of bool."),
    Word("index", "Indices into the dimension that `dim` names."),
    Word("mask", "A bool tensor that broadcasts with the others."),
    Word("scalar", "A 0-dimensional tensor."),
    Word("vector", "One dimension."),
    Word("matrix", "Two dimensions."),
    Word("square", "A square matrix."),
    Word("symmetric", "A symmetric matrix."),
    Word("positive_definite", "A symmetric positive definite matrix."),
    Word("batch", "A batch of matrices."),
    Word("nonempty", "At least one element."),
    Word("size", "A size."),
    Word("dim", "A dimension of the tensor."),
    Word("dims", "Several dimensions of the tensor."),
    Word("skip", "The strategy of the rule leaves the argument at its default."),
)

_BINARY = "add sub mul truediv div floordiv mod pow matmul and or xor lshift rshift"
_DUNDERS = (  # kind, how it is written, which there are, what it says
    ("binary", "__{}__", _BINARY, "The operands in order."),
    ("reflected", "__r{}__", _BINARY, "The operands in reverse."),
    ("inplace", "__i{}__", _BINARY, "Changes the first operand."),
    ("binary", "__{}__", "eq ne lt le gt ge", "A comparison."),
    ("unary", "__{}__", "neg pos abs invert", "Of one operand."),
)
DUNDERS = tuple(Word(form.format(name), meaning) for _, form, which, meaning in _DUNDERS for name in which.split())
DUNDER_KINDS = {form.format(name): kind for kind, form, which, _ in _DUNDERS for name in which.split()}
"""How each takes its operands: `binary`, `reflected`, `inplace` or `unary`."""


def names(words: tuple[Word, ...]) -> tuple[str, ...]:
    """The words alone."""
    return tuple(word.name for word in words)
