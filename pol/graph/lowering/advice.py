"""What to do about an operation without a rule: every refusal names the operation, the user's line and a way out."""

from __future__ import annotations

from pol.errors import UnsupportedError

DECOMPOSED = (
    "t", "rsub", "addcmul", "addcdiv", "lerp", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
    "new_full", "fill", "mse_loss", "mse_loss_backward", "l1_loss", "smooth_l1_loss", "smooth_l1_loss_backward",
    "huber_loss", "huber_loss_backward", "leaky_relu", "leaky_relu_backward", "softplus",
    "softplus_backward", "hardtanh", "hardtanh_backward", "elu", "elu_backward", "baddbmm", "addmv", "mv", "dot",
    "binary_cross_entropy", "binary_cross_entropy_backward", "native_dropout_backward", "stack", "unbind", "square",
    "masked_fill", "xlogy", "mish", "mish_backward",
    "hardswish", "hardswish_backward", "hardsigmoid", "hardsigmoid_backward", "_prelu_kernel", "_prelu_kernel_backward",
    "glu", "glu_backward", "celu", "softshrink", "hardshrink", "threshold", "soft_margin_loss",
    "soft_margin_loss_backward", "index_fill", "norm", "logaddexp", "log_sigmoid_forward", "log_sigmoid_backward",
    "rrelu_with_noise_backward", "rot90",
)  # fmt: skip
"""ATen operations that a capture replaces by torch's own decomposition. The list is part of what pol is: frozen."""

RANDOM = (
    "draw with rand, randn, randint, bernoulli, multinomial, randperm, dropout or torch.distributions in the model or "
    "the loss, or put the numbers into the data set"
)
_ADVICE = (
    (
        ("embedding_renorm",),
        "leave out max_norm, which changes the table during the forward pass, and bound the rows that were looked up",
    ),
    (("fractional_max_pool",), "use max_pool2d or adaptive_max_pool2d: fractional pooling draws its windows"),
    (("while_loop", "scan"), "write a for loop of a fixed number of rounds, with torch.where for what ends earlier"),
    (("flex_attention",), "use scaled_dot_product_attention, and give what changes the scores as its attn_mask"),
    (("cond",), "compute both branches and choose with torch.where(condition, yes, no)"),
    (("sparse",), "leave sparse=True out: gradients of embeddings are dense"),
    (
        ("pack_padded_sequence",),
        "give the layer all padded texts, and choose its outputs by a mask, or by gather at the last positions: packed "
        "texts have another shape for other lengths",
    ),
    (("deform_conv",), "use an ordinary convolution"),
    (
        ("batch_norm", "layer_norm", "group_norm", "rms_norm"),
        "normalization layers are not defined yet: write (x - m) * torch.rsqrt(((x - m) ** 2).mean(-1, True) + eps) "
        "with m = x.mean(-1, True)",
    ),
    (
        ("_standard_gamma_grad", "_dirichlet_grad"),
        "draw gamma, beta and Dirichlet numbers with sample(), not rsample(), or take torch.distributions.Kumaraswamy",
    ),
    (
        ("linalg_eig", "linalg_svd", "_linalg_eigh", "linalg_lstsq", "linalg_ldl"),
        "eigenvalues and singular values have no definition: use solve, cholesky or qr of small matrices, or power "
        "iteration for the greatest one",
    ),
    (
        ("linalg", "lu_solve", "triangular_solve", "cholesky", "geqrf", "householder"),
        "factorizations and solutions are defined for float32 matrices of at most 64 rows and columns",
    ),
    (("poisson", "binomial"), "put the counts into the data set, or draw with bernoulli or multinomial"),
    (("dropout", "rand", "bernoulli", "normal_", "multinomial", "uniform"), RANDOM),
    (("norm",), "write the norm as (x * x).sum(dim).sqrt()"),
    (("std", "var"), "write the variance as ((x - x.mean(dim, True)) ** 2).mean(dim)"),
    (
        ("unique", "nonzero", "bincount", "histc"),
        "its shape depends on data: compute all classes, with index_add, one_hot or bincount(minlength=n)",
    ),
    (("max.", "min."), "use .amax(dim) or .amin(dim)"),
)
_GENERAL = "write this line with the operations listed in docs/operations.md"


def advice(operation: str) -> str:
    """What to write instead of an ATen operation that has no rule."""
    name = operation.removeprefix("aten.")
    return next((what for parts, what in _ADVICE if any(part in name for part in parts)), _GENERAL)


def undefined(source: str, operation: str) -> UnsupportedError:
    """The refusal of an operation that has no rule."""
    return UnsupportedError(f"{source} -- {operation} has no definition in pol: {advice(operation)}")


def random(source: str, operation: str) -> UnsupportedError:
    """The refusal of an operation that draws random numbers."""
    return UnsupportedError(f"{source} -- {operation} draws random numbers outside of the forward pass: {RANDOM}")
