"""SFTTrainer of trl, which packs its data: it is a Trainer, and recorded like one."""

from pathlib import Path

import pytest
from stopped_trainer import Stop, StopAt
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

from pol.integrations.transformers import TransformersRecording
from pol.training.record.learning_record import LearningRecord

trl = pytest.importorskip("trl", reason="trl isn't installed: .ci/setup --slow")
datasets = pytest.importorskip("datasets", reason="datasets isn't installed: .ci/setup --slow")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.long]  # of trl's own packages, which aren't the matter


def train(folder: Path, store: str, stop: int | None = None) -> LearningRecord | None:
    """Lines of words as numbers, packed into rows of 16."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    set_seed(0)
    words = Tokenizer(WordLevel({f"w{i}": i for i in range(30)} | {"<pad>": 30, "<end>": 31}, unk_token="w0"))
    words.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<end>")
    lines = [" ".join(f"w{(i * 7 + j) % 30}" for j in range(3 + i % 9)) for i in range(60)]
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    )
    arguments = trl.SFTConfig(
        output_dir=str(folder / "out"), per_device_train_batch_size=2, max_length=16, packing=True, num_train_epochs=2,
        logging_steps=2, save_strategy="no", use_cpu=True, bf16=False, report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False, gradient_checkpointing=False, seed=3,
    )  # fmt: skip
    trainer = trl.SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=datasets.Dataset.from_dict({"text": lines}),
        processing_class=tokenizer,
    )
    recording = TransformersRecording(trainer, f"file://{folder}/{store}", every=3)
    if stop is None:
        trainer.train(resume_from_checkpoint=recording.resume())
        assert recording.recorder is not None
        return recording.recorder.close()
    trainer.add_callback(StopAt(stop))
    with pytest.raises(Stop):
        trainer.train(resume_from_checkpoint=recording.resume())
    assert recording.recorder is not None
    recording.recorder.flush()
    return None


def test_a_run_that_was_cut_ends_with_the_same_roots(tmp_path: Path) -> None:
    whole = train(tmp_path, "whole")
    train(tmp_path, "cut", 8)
    cut = train(tmp_path, "cut")
    assert whole is not None
    assert cut is not None
    assert len(cut.checkpoints) > 4
    assert [checkpoint.root for checkpoint in cut.checkpoints] == [checkpoint.root for checkpoint in whole.checkpoints]
