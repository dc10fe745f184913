"""A small transformer: embedding, causal attention, feed-forward network, RMS norms, cross-entropy, a step."""

import torch
from torch import Tensor

from pol.zk.step_functions import cross_entropy, descend, root_mean_square_norm, softmax, split

VOCABULARY, LENGTH, WIDTH, HIDDEN = 8, 4, 8, 16
SHAPES = (
    (VOCABULARY, WIDTH),
    (LENGTH, WIDTH),
    (1, WIDTH),
    (WIDTH, WIDTH),
    (WIDTH, WIDTH),
    (WIDTH, WIDTH),
    (WIDTH, WIDTH),
    (1, WIDTH),
    (WIDTH, HIDDEN),
    (HIDDEN, WIDTH),
    (WIDTH, VOCABULARY),
)
INPUTS = {"theta": (1, 688), "x": (LENGTH, VOCABULARY), "y": (LENGTH, VOCABULARY)}


def step(theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The weights after the step, shape (1, 688); x and y are one-hot tokens."""
    parts = split(theta, SHAPES)
    tokens, positions, gain1, query, key, value, out, gain2, up, down, head = parts
    stream = x @ tokens + positions
    inner = root_mean_square_norm(stream, gain1)
    scores = (inner @ query) @ (inner @ key).t() * WIDTH**-0.5
    attention = softmax(scores, torch.ones(LENGTH, LENGTH).tril())
    stream = stream + attention @ (inner @ value) @ out
    inner = root_mean_square_norm(stream, gain2)
    stream = stream + torch.relu(inner @ up) @ down
    return descend(cross_entropy(stream @ head, y), parts, 2.0**-5)
