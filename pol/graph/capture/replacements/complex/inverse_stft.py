"""Signals from their short-time Fourier transforms; torch's own function reads the least sum of the windows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pol.graph.capture.replacements.table import replaces_function


@replaces_function(torch.istft, Tensor.istft)
def _istft(
    value: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """Adds up the frames, times their windows, by the sum of the squared windows."""
    if return_complex or onesided is False or (onesided is None and value.shape[-2] == n_fft != n_fft // 2 + 1):
        return NotImplemented
    width = n_fft if win_length is None else win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    shape = torch.ones(width) if window is None else window
    left = (n_fft - width) // 2
    shape = torch.nn.functional.pad(shape, (left, n_fft - width - left))
    frames = torch.fft.irfft(value.transpose(-1, -2), n=n_fft, norm="ortho" if normalized else "backward") * shape
    count = frames.shape[-2]
    places = (hop * torch.arange(count)[:, None] + torch.arange(n_fft)).reshape(-1)
    size = hop * (count - 1) + n_fft
    lead = frames.shape[:-2]
    signal = frames.new_zeros(*lead, size).index_add(-1, places, frames.reshape(*lead, -1))
    weights = torch.zeros(size).index_add(0, places, (shape * shape).repeat(count))
    start = n_fft // 2 if center else 0
    end = size - start if length is None else start + length
    if end > size:
        signal = torch.nn.functional.pad(signal, (0, end - size))
        weights = torch.nn.functional.pad(weights, (0, end - size), value=1.0)
    return signal[..., start:end] / weights[start:end]
