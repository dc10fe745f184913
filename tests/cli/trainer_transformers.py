"""The Trainer of transformers with an augmented data set; its argument says where the augmentation draws from."""

import sys

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments, set_seed

from pol.integrations.transformers import TransformersRecording


class Data(torch.utils.data.Dataset[dict[str, Tensor]]):
    def __init__(self, own: bool) -> None:
        self.x = torch.randn(40, 8, generator=torch.Generator().manual_seed(1))
        self.noise = torch.Generator().manual_seed(2) if own else None

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"x": self.x[index] + 0.1 * torch.randn(8, generator=self.noise), "labels": self.x[index].sum()}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 1))

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        y = self.body(x).squeeze(1)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}


if __name__ == "__main__":
    set_seed(0)
    arguments = TrainingArguments(
        output_dir=sys.argv[2],
        per_device_train_batch_size=8,
        num_train_epochs=5,
        save_strategy="no",
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(model=Model(), args=arguments, train_dataset=Data(sys.argv[1] == "own"))
    recording = TransformersRecording(trainer, "memory://never-used", every=50)
    trainer.train(resume_from_checkpoint=recording.resume())
