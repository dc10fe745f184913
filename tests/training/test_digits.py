"""The example's data is what was published, and its order of samples is data."""

import gzip
from pathlib import Path

import pytest
import torch

from pol.demo import digits
from pol.errors import OperationalError, ProtocolError


def test_the_data_set() -> None:
    images, labels = digits.dataset()
    assert images.shape == (1797, 64)
    assert images.dtype == torch.float32
    assert labels.shape == (1797,)
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert images.min() == 0.0
    assert images.max() == 1.0
    assert (images * 16 == (images * 16).round()).all()
    assert images[0, 2] == 5 / 16


def test_one_changed_pixel_is_noticed(tmp_path: Path) -> None:
    rows = gzip.decompress(digits.path().read_bytes()).replace(b"13", b"12", 1)
    changed = tmp_path / "digits.csv.gz"
    changed.write_bytes(gzip.compress(rows))
    with pytest.raises(
        ProtocolError, match=r"digits\.csv\.gz has changed: its keccak-256 is [0-9a-f]{64}, expected 7629"
    ):
        digits.dataset(changed)
    with pytest.raises(OperationalError, match="can't read"):
        digits.dataset(tmp_path / "missing")


def test_the_order_is_epochs_without_repetition() -> None:
    order = digits.order(seed=1, steps=120, batch=32)
    assert order.shape == (120, 32)
    assert torch.equal(order, digits.order(seed=1, steps=120, batch=32))
    assert torch.equal(order[:60], digits.order(seed=1, steps=60, batch=32))
    assert not torch.equal(order, digits.order(seed=2, steps=120, batch=32))
    epoch = order[:56].flatten()
    assert len(set(epoch.tolist())) == 56 * 32
    assert int(order.min()) >= 0
    assert int(order.max()) < 1797
    with pytest.raises(ProtocolError):
        digits.order(seed=1, steps=10, batch=1798)


def test_the_model_is_seeded_and_leaves_torch_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = digits.build_model(3)
    assert torch.equal(torch.rand(3), expected)
    second = digits.build_model(3)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert [tuple(p.shape) for p in first.parameters()] == [(64, 64), (64,), (10, 64), (10,)]
