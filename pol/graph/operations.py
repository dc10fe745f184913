"""The table of all operations that have a definition: `python -m pol.graph.operations > docs/operations.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pol.graph.aten import LOWERING_VERSION
from pol.graph.lowering import RULES
from pol.graph.lowering.advice import DECOMPOSED
from pol.graph.lowering.contractions import CONTRACTIONS
from pol.graph.lowering.convolutions import CONVOLUTIONS
from pol.graph.lowering.elementwise import ELEMENTWISE
from pol.graph.lowering.indexed import INDEXED
from pol.graph.lowering.reductions import LANES, REDUCTIONS, SEQUENTIAL
from pol.graph.lowering.views import VIEWS

FAMILIES: Mapping[str, Mapping[str, object]] = {
    "Views and constants: no arithmetic, mostly no node": VIEWS,
    "Elementwise: one map": ELEMENTWISE,
    "Reductions": REDUCTIONS,
    "Matrix products": CONTRACTIONS,
    "Convolutions": CONVOLUTIONS,
    "Addresses that depend on data": INDEXED,
}

_SAME = "its first argument"
_COMPARISON = "1 or 0; as integers only if both are integers; NaN is unequal to everything"
_BOOLEAN = "of booleans"
DEFINITIONS: Mapping[str, str] = {
    **dict.fromkeys(("alias.default", "clone.default", "detach.default", "lift_fresh_copy.default"), _SAME),
    **dict.fromkeys(("transpose.int", "permute.default"), "other strides"),
    "expand.default": "stride 0 along broadcast dimensions",
    **dict.fromkeys(("unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims"), "dimensions of size 1"),
    **dict.fromkeys(
        ("view.default", "_unsafe_view.default"), "other shape; a map that moves words if strides can't say it"
    ),
    **dict.fromkeys(("select.int", "slice.Tensor", "split_with_sizes.default"), "a part; step of a slice >= 1"),
    **dict.fromkeys(("full.default", "full_like.default", "scalar_tensor.default"), "one number repeated"),
    **dict.fromkeys(
        ("arange.default", "arange.start", "arange.start_step"), "integers only: start + step * coordinate"
    ),
    **{
        f"{relation}.{overload}": _COMPARISON
        for relation in ("eq", "ne", "lt", "le", "gt", "ge")
        for overload in ("Scalar", "Tensor")
    },
    **dict.fromkeys(("add.Tensor", "add.Scalar"), "FADD; with alpha FFMA(b, alpha, a); integers: ADD, MUL"),
    **dict.fromkeys(("sub.Tensor", "sub.Scalar"), "FSUB; with alpha FFMA(b, -alpha, a); integers: SUB, MUL"),
    **dict.fromkeys(("mul.Tensor", "mul.Scalar"), "FMUL; integers: MUL"),
    **dict.fromkeys(("div.Tensor", "div.Scalar"), "FDIV, float32 results only"),
    "maximum.default": "FMAX, float32 only",
    "minimum.default": "FMIN, float32 only",
    "sqrt.default": "FSQRT",
    "abs.default": "FABS, float32 only",
    "neg.default": "FNEG; integers: 0 - x",
    **{
        f"{name}.default": f"the function `{name}`"
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "erf", "tanh", "sigmoid", "rsqrt"),
            "reciprocal",
        )
    },
    "relu.default": "FMAX(x, 0), float32 only",
    "threshold_backward.default": "0 where x <= threshold, else the gradient",
    "tanh_backward.default": "g * (1 - y * y)",
    "sigmoid_backward.default": "g * ((1 - y) * y)",
    "gelu.default": "approximate='tanh' only",
    "gelu_backward.default": "approximate='tanh' only",
    **dict.fromkeys(("sign.default", "sgn.default"), "(0 < x) - (x < 0) as binary32"),
    **dict.fromkeys(("clamp.default", "clamp_min.default"), "FMAX with min, then FMIN with max; bounds are numbers"),
    **dict.fromkeys(("where.self", "where.ScalarOther", "where.ScalarSelf"), "SELECT; both choices of one type"),
    "pow.Tensor_Scalar": "exponents 1, 2, 3, 4, -1, -2, 0.5, -0.5; float32 only",
    "_to_copy.default": "I2F, F2I (towards zero), or x != 0 for a boolean; types with a word only",
    **dict.fromkeys(("logical_and.default", "bitwise_and.Tensor"), f"AND {_BOOLEAN}"),
    **dict.fromkeys(("logical_or.default", "bitwise_or.Tensor"), f"OR {_BOOLEAN}"),
    **dict.fromkeys(("logical_not.default", "bitwise_not.default"), f"x = 0 {_BOOLEAN}"),
    **dict.fromkeys(("sum.default", "sum.dim_IntList"), "FADD; integers: ADD, or I2F first with a float32 result"),
    **dict.fromkeys(("mean.default", "mean.dim"), "the sum, FDIV by the count; float32 only"),
    "amax.default": "FMAX from -infinity, float32 only",
    "amin.default": "FMIN from +infinity, float32 only",
    "_log_softmax.default": "s = x - max; s - log(sum(exp(s)))",
    "_softmax.default": "s = x - max; exp(s) / sum(exp(s))",
    "_log_softmax_backward_data.default": "g - exp(y) * sum(g)",
    "_softmax_backward_data.default": "y * (g - sum(g * y))",
    **dict.fromkeys(("mm.default", "bmm.default"), "acc = FFMA(a, b, acc) from +0, k ascending; float32 only"),
    "addmm.default": "the product as in mm, times alpha, plus bias times beta",
    "convolution.default": "1 to 3 dimensions, groups, transposed: acc = FFMA(x, w, acc) from +0 over (channel, taps); "
    "outside of the input x is +0; then FADD of the bias. Transposed: as the gradient of the input",
    "convolution_backward.default": "input: FFMA from +0 over (output channel, windows that see the position, taps "
    "ascending; what a stride leaves out counts as +0); weight: FFMA over (example, positions); bias: the sum",
    **dict.fromkeys(
        ("index_select.default", "embedding.default"), "rows by index; NaN (integers: 0) where there is none"
    ),
    "gather.default": "words by index; NaN (integers: 0) where there is none",
    "scatter_add.default": "self + (sum of the source words whose index is the coordinate, ascending)",
    "embedding_dense_backward.default": "sum of the gradients of the tokens of a row, ascending; no scale_grad_by_freq",
    "nll_loss_forward.default": "one label per row; no class weights; reductions none, mean, sum",
    "nll_loss_backward.default": "minus the gradient (over the counted labels) at the label, else 0; no class weights",
}
"""What an operation of RULES computes, without "aten.", and what of it is left out."""


def document() -> str:
    """The text of docs/operations.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Operations with a definition"
    yield ""
    yield "Written by `python -m pol.graph.operations > docs/operations.md`; do not edit."
    yield ""
    yield f"Lowering version {LOWERING_VERSION} ([spec/documents.md](spec/documents.md)): {len(RULES)} ATen operations."
    yield "Upper-case names are primitives ([spec/arithmetic.md](spec/arithmetic.md)), functions are those of"
    yield "[spec/functions.md](spec/functions.md). Elementwise operations broadcast, and convert integers with I2F"
    yield "where the result is float32."
    yield ""
    yield f"A reduction folds up to {SEQUENTIAL} terms in row-major order, from the neutral element on. Of more terms,"
    yield f"{LANES} interleaved lanes are folded (lane l takes terms l, l + {LANES}, ...), and then halves are joined:"
    yield f"lane l with l + {LANES // 2}, l + {LANES // 4}, ..., l + 1."
    for title, rules in FAMILIES.items():
        yield ""
        yield f"## {title}"
        yield "| operation | definition and limits |"
        yield "| --- | --- |"
        yield from (f"| `{name}` | {DEFINITIONS[name.removeprefix('aten.')]} |" for name in rules)
    yield ""
    yield "## Replaced at capture"
    yield "By torch's own decomposition into the operations above, before the graph is recorded:"
    yield f"{', '.join(f'`{name}`' for name in sorted(DECOMPOSED))}."


if __name__ == "__main__":
    print(document(), end="")
