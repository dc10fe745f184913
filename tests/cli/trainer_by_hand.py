"""nanoGPT's loop as people write it: batches drawn by hand, the next one while the present one is computed."""

import random
import sys

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pol import Recorder

TEXT = torch.randint(0, 9, (500,), generator=torch.Generator().manual_seed(1))


def get_batch() -> tuple[Tensor, Tensor]:
    places = torch.randint(0, len(TEXT) - 9, (4,))
    return torch.stack([TEXT[i : i + 8] for i in places]), torch.stack([TEXT[i + 1 : i + 9] for i in places])


class Ahead:
    """The batch that is drawn ahead: part of the state between two steps."""

    def __init__(self) -> None:
        self.x, self.y = get_batch()

    def draw(self) -> tuple[Tensor, Tensor]:
        batch = self.x, self.y
        self.x, self.y = get_batch()
        return batch

    def state_dict(self) -> dict[str, Tensor]:
        return {"x": self.x, "y": self.y}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.x, self.y = state["x"], state["y"]


def main(manner: str) -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = nn.Sequential(nn.Embedding(9, 12), nn.Linear(12, 9))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    ahead = Ahead() if manner == "as a part" else None
    parts = {} if ahead is None else {"ahead": ahead}
    recorder = Recorder("memory://never-used", model, optimizer, every=50, parts=parts)
    recorder.resume()
    if manner == "ahead":
        x, y = get_batch()
    while recorder.steps < 40:
        if manner == "each step":
            x, y = get_batch()
        elif ahead is not None:
            x, y = ahead.draw()
        logits = model(x)
        loss = functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        if manner == "ahead":
            x, y = get_batch()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        recorder.step()
    recorder.close()


if __name__ == "__main__":
    main(sys.argv[1])
