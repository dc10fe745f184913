"""The worked example: a two-layer perceptron on 1,797 handwritten digits, in ordinary PyTorch.

Nothing in the model, the loss or the optimizer knows about pol.
"""

import gzip
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import pol
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.graph.capture import Capture, capture

FILE = Path("fixtures", "digits", "digits.csv.gz")
DIGEST = "762941069406b4182b250d8df0b06bf4c9feb5f2bac0ca40e805684cf5a4e223"
SAMPLES, PIXELS, CLASSES, WHITE = 1797, 64, 10, 16

STEPS, INTERVAL, BATCH, HIDDEN = 300, 25, 32, 64


def path() -> Path:
    """Path of the data: inside an installed package, or at the top of a checkout.

    Raises:
        OperationalError: it is in neither place.
    """
    package = Path(pol.__file__).parent
    places = [package / FILE, package.parent / FILE]
    for place in places:
        if place.is_file():
            return place
    raise OperationalError(f"the digits data set is missing; looked for {' and '.join(map(str, places))}")


def dataset(file: Path | None = None) -> tuple[Tensor, Tensor]:
    """Images (1797, 64) float32 in [0, 1] and labels (1797,) int64.

    Raises:
        ProtocolError: the file's bytes aren't the published ones.
        OperationalError: the file can't be read.
    """
    file = file or path()
    try:
        packed = file.read_bytes()
    except OSError as error:
        raise OperationalError(f"can't read {file}: {error}") from error
    actual = keccak256(packed).hex()
    if actual != DIGEST:
        raise ProtocolError(
            f"{file} has changed: its keccak-256 is {actual}, expected {DIGEST}; restore the published file"
        )
    rows = np.loadtxt(gzip.decompress(packed).decode("ascii").splitlines(), delimiter=",", dtype=np.int64)
    images = torch.from_numpy((rows[:, :PIXELS] / WHITE).astype(np.float32))
    return images, torch.from_numpy(rows[:, PIXELS].copy())


def order(seed: int, steps: int = STEPS, batch: int = BATCH, samples: int = SAMPLES) -> Tensor:
    """The samples of each step: (steps, batch) int64, one shuffle after another, each without its remainder."""
    if not (steps >= 1 and 1 <= batch <= samples):
        raise ProtocolError(f"can't draw {steps} batches of {batch} from {samples} samples")
    generator = np.random.Generator(np.random.Philox(key=seed))
    per_epoch = samples // batch
    epochs = -(-steps // per_epoch)
    batches = [generator.permutation(samples)[: per_epoch * batch].reshape(per_epoch, batch) for _ in range(epochs)]
    return torch.from_numpy(np.concatenate(batches)[:steps].astype(np.int64))


class DigitClassifier(nn.Module):
    """A perceptron with one hidden layer: 64 pixels in, 10 scores out."""

    def __init__(self, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.hidden = nn.Linear(PIXELS, hidden)
        self.output = nn.Linear(hidden, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Scores (batch, 10) of images (batch, 64)."""
        features = torch.relu(self.hidden(images))
        scores: Tensor = self.output(features)
        return scores


def build_model(seed: int, hidden: int = HIDDEN) -> DigitClassifier:
    """The classifier, initialized from ``seed`` without touching torch's global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DigitClassifier(hidden)


def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum."""
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def loss_function(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of one batch."""
    return nn.functional.cross_entropy(scores, labels)


def accuracy(model: nn.Module) -> float:
    """Share of the whole data set that the model classifies correctly."""
    images, labels = dataset()
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())


def captured(seed: int) -> Capture:
    """The training step of the example as a step program, with its data and its initial state."""
    model = build_model(seed)
    return capture(model, loss_function, build_optimizer(model), dataset(), order(seed))
