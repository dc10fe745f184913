"""The table of all operations that have a definition: `python -m pol.graph.operations > docs/operations.md`.

The measured columns come from docs/operations.json, see pol.graph.measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pol.graph.aten_graph import LOWERING_VERSION
from pol.graph.lowering import RULES
from pol.graph.lowering.activations import ACTIVATIONS
from pol.graph.lowering.adaptive import ADAPTIVE
from pol.graph.lowering.advice import DECOMPOSED
from pol.graph.lowering.attention import ATTENTION
from pol.graph.lowering.borders import BORDERS
from pol.graph.lowering.contractions import CONTRACTIONS
from pol.graph.lowering.convolutions import CONVOLUTIONS
from pol.graph.lowering.elementwise import ELEMENTWISE
from pol.graph.lowering.folds import LANES, ROUNDS, SEQUENTIAL
from pol.graph.lowering.indexed import INDEXED
from pol.graph.lowering.integers import INTEGERS
from pol.graph.lowering.joins import JOINS
from pol.graph.lowering.losses import LOSSES
from pol.graph.lowering.normalisation import NORMALISATION
from pol.graph.lowering.pooling import POOLING
from pol.graph.lowering.powers import POWERS
from pol.graph.lowering.randomness import RANDOM
from pol.graph.lowering.reductions import REDUCTIONS
from pol.graph.lowering.resampling import RESAMPLING
from pol.graph.lowering.scatter import SCATTER
from pol.graph.lowering.selection import SELECTION
from pol.graph.lowering.softmax import SOFTMAX
from pol.graph.lowering.views import VIEWS
from pol.graph.measurements import HEADINGS, Measurements

FAMILIES: Mapping[str, Mapping[str, object]] = {
    "Views and constants: no arithmetic, mostly no node": VIEWS,
    "Joining and cutting: words move": JOINS,
    "Elementwise: one map": ELEMENTWISE,
    "Activations: one map": ACTIVATIONS,
    "Powers: one map": POWERS,
    "Whole numbers and bits: one map": INTEGERS,
    "Reductions": REDUCTIONS,
    "Softmax": SOFTMAX,
    "Normalisation": NORMALISATION,
    "Matrix products": CONTRACTIONS,
    "Convolutions": CONVOLUTIONS,
    "Attention": ATTENTION,
    "Reading at addresses from data": INDEXED,
    "Writing at addresses from data": SCATTER,
    "Order of data": SELECTION,
    "Losses over class labels": LOSSES,
    "Pooling": POOLING,
    "Adaptive pooling": ADAPTIVE,
    "Interpolation": RESAMPLING,
    "Borders and order of positions": BORDERS,
    "Random numbers: draws that stand for torch's random operations ([spec/randomness.md](spec/randomness.md))": RANDOM,
}

_SAME = "its first argument"
_COMPARISON = "1 or 0; as integers only if both are integers; NaN is unequal to everything"
DEFINITIONS: Mapping[str, str] = {
    **dict.fromkeys(("alias.default", "clone.default", "detach.default", "lift_fresh_copy.default"), _SAME),
    "copy.default": "its second argument, broadcast to the first",
    **dict.fromkeys(("transpose.int", "permute.default"), "other strides"),
    "expand.default": "stride 0 along broadcast dimensions",
    **dict.fromkeys(("unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims"), "dimensions of size 1"),
    **dict.fromkeys(
        ("view.default", "_unsafe_view.default"), "other shape; a map that moves words if strides can't say it"
    ),
    **dict.fromkeys(
        ("select.int", "slice.Tensor", "split_with_sizes.default", "split.Tensor", "unsafe_split.Tensor"),
        "a part; step of a slice >= 1",
    ),
    "flip.default": "negative strides",
    "cat.default": "reads with bounds whose fill is 0, joined with OR; more than 8 tensors in groups",
    "repeat.default": "stride 0 along the repetitions, and a map that moves words",
    "roll.default": "two parts, joined as in cat",
    "constant_pad_nd.default": "reads with bounds whose fill is the number; negative widths cut",
    **dict.fromkeys(("slice_backward.default", "select_backward.default"), "the gradient at its positions, else 0"),
    "slice_scatter.default": "SELECT by position; step 1 only",
    "select_scatter.default": "SELECT by position",
    **dict.fromkeys(("tril.default", "triu.default"), "SELECT by the positions in the last two dimensions"),
    **dict.fromkeys(("ones.default", "zeros.default"), "one number repeated"),
    **dict.fromkeys(("full.default", "full_like.default", "scalar_tensor.default"), "one number repeated"),
    **dict.fromkeys(
        ("arange.default", "arange.start", "arange.start_step"),
        "start + step * coordinate: FFMA(I2F(coordinate), step, start); integers: ADD, MUL",
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
    "maximum.default": "FMAX; integers: SELECT by LTS",
    "minimum.default": "FMIN; integers: SELECT by LTS",
    "sqrt.default": "FSQRT",
    "abs.default": "FABS; integers: SELECT by sign",
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
    "silu.default": "x * sigmoid(x)",
    "silu_backward.default": "g * (s * FFMA(x, 1 - s, 1)), s = sigmoid(x)",
    "gelu.default": "x / 2 * (1 + T), T = erf(x * sqrt(1/2)), or tanh with approximate='tanh'",
    "gelu_backward.default": "g * ((1 + T) / 2 + x * T' / 2), T as in gelu",
    **dict.fromkeys(("softshrink_backward.default", "hardshrink_backward.default"), "0 where |x| <= lambda, else g"),
    "log10.default": "the function `log`, FMUL by 1 / log(10)",
    "isnan.default": "x != x",
    "isinf.default": "|x| = infinity",
    **dict.fromkeys(("floor.default", "ceil.default", "trunc.default"), "FRINT, corrected by 1"),
    "round.default": "FRINT; no decimals",
    **dict.fromkeys(
        ("fmod.Scalar", "fmod.Tensor"),
        "the exact rest: 13 rounds (a known divisor: fewer) of FFMA(-q, 2^(22 k) |b|, r), float32 only",
    ),
    "floor_divide.default": "(a - fmod(a, b)) / b to the whole number below, as torch; integers: by a positive number",
    **dict.fromkeys(
        ("remainder.Scalar", "remainder.Tensor"),
        "fmod(a, b), plus b where their signs differ; integers: by a positive number",
    ),
    **dict.fromkeys(
        ("div.Tensor_mode", "div.Scalar_mode"),
        "floor: as floor_divide; trunc: FDIV, truncated; integers: floor by a positive number",
    ),
    **dict.fromkeys(("sign.default", "sgn.default"), "(0 < x) - (x < 0) as binary32"),
    **dict.fromkeys(
        (
            "clamp.default",
            "clamp.Tensor",
            "clamp_min.default",
            "clamp_min.Tensor",
            "clamp_max.default",
            "clamp_max.Tensor",
        ),
        "FMAX with min, then FMIN with max; integers: SELECT by LTS",
    ),
    **dict.fromkeys(
        ("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"), "SELECT; both choices of one type"
    ),
    **dict.fromkeys(
        ("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar"),
        "exponents 1, 2, 3, 4, -1, -2, 0.5, -0.5 as products, FSQRT, FDIV; others: the function `power`; "
        "integers: exponents 1 to 4",
    ),
    "_to_copy.default": "I2F, F2I (towards zero), x != 0 for a boolean, or to bfloat16; types with a word only",
    **{f"logical_{name}.default": f"{name.upper()} of x != 0" for name in ("and", "or", "xor")},
    "logical_not.default": "x = 0",
    **{
        f"bitwise_{name}.{overload}": f"{name.upper()}; booleans and integers"
        for name, overload in (
            ("and", "Tensor"),
            ("or", "Tensor"),
            ("xor", "Tensor"),
            ("and", "Scalar"),
            ("or", "Scalar"),
        )
    },
    "bitwise_not.default": "XOR with all bits; booleans: with 1",
    **dict.fromkeys(("sum.default", "sum.dim_IntList"), "FADD; integers: ADD, or I2F first with a float32 result"),
    **dict.fromkeys(("mean.default", "mean.dim"), "the sum, FDIV by the count; float32 only"),
    **dict.fromkeys(("prod.default", "prod.dim_int"), "FMUL; integers: MUL, or I2F first with a float32 result"),
    **dict.fromkeys(("amax.default", "max.default"), "FMAX from -infinity; the greatest integer"),
    **dict.fromkeys(("amin.default", "min.default"), "FMIN from +infinity; the least integer"),
    **dict.fromkeys(("max.dim", "min.dim"), "as amax and amin, and the first place of the extreme, or of a NaN"),
    **dict.fromkeys(("argmax.default", "argmin.default"), "the first place of the extreme, or of a NaN"),
    **dict.fromkeys(("any.default", "any.dim", "any.dims"), "OR of x != 0"),
    **dict.fromkeys(("all.default", "all.dim"), "AND of x != 0"),
    **dict.fromkeys(
        ("var.correction", "var_mean.correction"),
        "sum(FFMA(c, c, ...)) / (n - correction), c = x - (x_0 + sum(x - x_0) / n)",
    ),
    "std.correction": "FSQRT of the variance",
    "linalg_vector_norm.default": "FSQRT(sum(FFMA(x, x, ...))), sum(|x|), max |x|, min |x|; no other orders",
    "logsumexp.default": "m + log(sum(exp(x - m))), m = max, or 0 where that is infinite",
    "cumsum.default": "blocks of 64 terms in order, each then added to the running sum of the blocks before it",
    "_log_softmax.default": "s = x - max; s - log(sum(exp(s)))",
    "_softmax.default": "e = exp(x - max); e / sum(e)",
    "_log_softmax_backward_data.default": "g - exp(y) * sum(g)",
    "_softmax_backward_data.default": "y * (g - sum(FFMA(g, y, ...)))",
    "native_layer_norm.default": "FFMA((x - mean) * rstd, weight, bias); rstd = rsqrt(sum(FFMA(c, c, ...)) / n + eps)",
    "native_layer_norm_backward.default": (
        "h = g * weight, c = x - mean: rstd * (h - FFMA(c, rstd * (rstd * sum(FFMA(h, c, ...)) / n), sum(h) / n)); "
        "sum(FFMA(g, c * rstd, ...)); sum(g)"
    ),
    "_native_batch_norm_legit_functional.default": (
        "as layer norm, over all but the second dimension, in training; running = FFMA(new, momentum, old * (1 - "
        "momentum)) with the variance over n - 1"
    ),
    "_native_batch_norm_legit.no_stats": "the same without running statistics",
    "native_batch_norm_backward.default": (
        "w = rstd * sum(FFMA(g, c, ...)): (weight * rstd) * (g - FFMA(c, rstd * (w / n), sum(g) / n)); w; sum(g)"
    ),
    "native_group_norm.default": "as layer norm, over the channels and positions of a group",
    "native_group_norm_backward.default": "as for layer norm; sums over positions first, then over channels",
    **dict.fromkeys(("mm.default", "bmm.default"), "acc = FFMA(a, b, acc) from +0, k ascending; float32 only"),
    "addmm.default": "the product as in mm, times alpha, plus bias times beta",
    "convolution.default": "1 to 3 dimensions, groups, transposed: acc = FFMA(x, w, acc) from +0 over (channel, taps); "
    "outside of the input x is +0; then FADD of the bias. Transposed: as the gradient of the input",
    "convolution_backward.default": "input: FFMA from +0 over (output channel, windows that see the position, taps "
    "ascending; what a stride leaves out counts as +0); weight: FFMA over (example, positions); bias: the sum",
    **{
        f"max_pool{rank}d_with_indices.default": "FMAX from -infinity over the taps; the index is that of the first "
        "greatest, or of the last NaN"
        for rank in (2, 3)
    },
    **{
        f"max_pool{rank}d_with_indices_backward.default": "FADD from +0 over the windows whose index is the position"
        for rank in (2, 3)
    },
    **{
        f"avg_pool{rank}d.default": "FADD from +0 over the taps (+0 outside of the input), FDIV by the count or the "
        "divisor"
        for rank in (2, 3)
    },
    **{
        f"avg_pool{rank}d_backward.default": "the gradients divided, FADD from +0 over the windows that see the "
        "position; in three dimensions windows without overlap"
        for rank in (2, 3)
    },
    **{
        f"_adaptive_avg_pool{rank}d.default": "parts floor(i * n / m) .. ceil((i + 1) * n / m): FADD from +0, FDIV by "
        "the count"
        for rank in (2, 3)
    },
    **{
        f"_adaptive_avg_pool{rank}d_backward.default": "the gradients divided, FADD from +0 over the parts that hold "
        "the position"
        for rank in (2, 3)
    },
    **{
        f"{name}{rank}d.default": f"position F2I({place}), the last one at most; scale in binary64, rounded"
        for name, place in (
            ("upsample_nearest", "FMUL(i, scale)"),
            ("_upsample_nearest_exact", "FMUL(FADD(i, 0.5), scale)"),
        )
        for rank in (1, 2, 3)
    },
    **{
        f"{name}{rank}d_backward.default": "FADD from +0 over the outputs that repeat the position"
        for name in ("upsample_nearest", "_upsample_nearest_exact")
        for rank in (1, 2, 3)
    },
    **{
        f"upsample_{kind}.default": "per dimension, the last one first: FADD(FMUL(1 - w, below), FMUL(w, above)), "
        "w = position - F2I(position)"
        for kind in ("linear1d", "bilinear2d", "trilinear3d")
    },
    **{
        f"upsample_{kind}_backward.default": "per dimension, the first one first: sums with FFMA of the gradients from "
        "below and from above, FADD"
        for kind in ("linear1d", "bilinear2d", "trilinear3d")
    },
    **dict.fromkeys(("reflection_pad1d.default", "reflection_pad2d.default"), "words mirrored at the borders"),
    **dict.fromkeys(
        ("reflection_pad1d_backward.default", "reflection_pad2d_backward.default"),
        "per dimension FADD of the inside, of what was mirrored before it, of what was mirrored behind it",
    ),
    **dict.fromkeys(("pixel_shuffle.default", "pixel_unshuffle.default"), "words in another order"),
    **dict.fromkeys(
        ("index_select.default", "embedding.default"), "rows by index; NaN (integers: 0) where there is none"
    ),
    "gather.default": "words by index; NaN (integers: 0) where there is none",
    "scatter_add.default": "self + (sum of the source words whose index is the coordinate, ascending)",
    **dict.fromkeys(
        ("scatter.src", "scatter.value"), "the last source word whose index is the coordinate, or else self"
    ),
    "index_add.default": "self + (sum of the source rows whose index is the row, ascending)",
    "index_copy.default": "the last source row whose index is the row, or else self",
    "index.Tensor": "words at the indices, below zero from the end; NaN (integers: 0) where there are none",
    "index_put.default": "self + (sum of the values at the place, ascending), or the last of them, or else self",
    **dict.fromkeys(
        ("topk.default", "sort.default", "sort.stable"),
        "rank = number of words before it: greater (ascending: smaller) ones, and equal ones at earlier places; "
        "NaN is greatest; up to 2048",
    ),
    "_safe_softmax.default": "s = x - max; exp(s) / FMAX(sum(exp(s)), 1), max not below the lowest number",
    "embedding_dense_backward.default": "sum of the gradients of the tokens of a row, ascending; no scale_grad_by_freq",
    **dict.fromkeys(
        ("nll_loss_forward.default", "nll_loss2d_forward.default"),
        "one label per row; class weights multiply; reductions none, mean (FDIV by the sum of weights), sum",
    ),
    **dict.fromkeys(
        ("nll_loss_backward.default", "nll_loss2d_backward.default"),
        "minus the gradient (over the sum of weights) times the weight at the label, else 0",
    ),
    "pol.uniform.default": "24 bits of a Philox word u; FFMA(u, high - low, low)",
    "pol.normal.default": "the function `normal` of a Philox word z; FFMA(z, std, mean)",
    "pol.bernoulli.default": "1 where a Philox word is below p * 2^32",
    "pol.integers.default": "low + MULHI(a Philox word, high - low)",
}
"""What an operation of RULES computes, without "aten.", and what of it is left out."""


def document(measured: Measurements) -> str:
    """The text of docs/operations.md."""
    return "\n".join(_lines(measured)) + "\n"


def _lines(measured: Measurements) -> Iterator[str]:
    yield "# Operations with a definition"
    yield ""
    yield "Written by `python -m pol.graph.operations > docs/operations.md`; do not edit."
    yield ""
    yield f"Lowering version {LOWERING_VERSION} ([spec/documents.md](spec/documents.md)): {len(RULES)} ATen operations."
    yield "Upper-case names are primitives ([spec/arithmetic.md](spec/arithmetic.md)), functions are those of"
    yield "[spec/functions.md](spec/functions.md). Elementwise operations broadcast, and convert integers with I2F"
    yield "where the result is float32. An operation on bfloat16 computes in float32; each element of a bfloat16 result"
    yield "is then rounded once, to nearest, ties to even."
    yield ""
    yield "A reduction counts neighbouring reduced dimensions that are evenly spaced in memory as one, and folds up to"
    yield f"{SEQUENTIAL} terms in row-major order, from the neutral element on. More terms are folded in {LANES}"
    yield f"lanes along the last of these dimensions that has at least {LANES} terms (or else along the longest, in as"
    yield f"many lanes as the greatest power of two in it): lane l takes the terms l, l + {LANES}, ..., in row-major"
    yield f"order with those of the other dimensions. Lanes of more than {ROUNDS} rounds are cut into equal pieces,"
    yield f"folded in order. Then halves are joined: lane l with l + {LANES // 2}, l + {LANES // 4}, ..., l + 1."
    yield ""
    yield "Measured ([operations.json](operations.json)):"
    yield "- **nodes**: the maps and folds of a small sample (`tests/samples.py`), after joining."
    yield "- **functions, ulp**: functions of its programs with their greatest errors in units in the last place. The"
    yield "  rest is primitives, each correctly rounded (0.5 ulp), in the order that the definition gives."
    yield "- **gas**: of the transaction that ends a dispute over the sample by executing the instruction that reads"
    yield "  most, without what the market then settles with the parties (about 55,000). A word read from a tensor"
    yield "  costs about 900 gas more for each doubling of the tensor or of the number of nodes."
    yield "- **time / torch**: our kernels over torch's for about a million elements, one thread each, medians of"
    yield "  alternating runs; `-` where it is not measured."
    for title, rules in FAMILIES.items():
        yield ""
        yield f"## {title}"
        yield f"| operation | definition and limits | {' | '.join(HEADINGS)} |"
        yield f"| --- | --- |{' --- |' * len(HEADINGS)}"
        for name in rules:
            yield f"| `{name}` | {DEFINITIONS[name.removeprefix('aten.')]} | {' | '.join(measured.cells(name))} |"
    yield ""
    yield "## Replaced at capture"
    yield "By torch's own decomposition into the operations above, before the graph is recorded:"
    yield f"{', '.join(f'`{name}`' for name in sorted(DECOMPOSED))}."


if __name__ == "__main__":
    print(document(Measurements.read(Path("docs"))), end="")
