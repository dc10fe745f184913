"""Hugging Face's most used architectures at toy size, unmodified: which of them a capture accepts, and how fast.

`PYTHONPATH=tests python -m lab.benchmarks.hugging_face > docs/models.md` writes the table of them all. Names behind the
module choose some: `... hugging_face GPT-2 BERT`.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.benchmarks.figure import Figure
from pol.errors import UnsupportedError
from pol.graph.capture import capture

ROWS, BATCH, STEPS = 8, 2, 2
LENGTH, WORDS, CLASSES, IMAGE, SAMPLES = 12, 64, 4, 32, 800
SMALL_NODES = 1000
"""Programs below this size have a bound on the time of their capture."""
SIZE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {"vocab_size": WORDS, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DECODER = {**SIZE, **TEXT, "num_key_value_heads": 2}
PAIR = {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "forced_eos_token_id": 2,
}  # fmt: skip
VISION = {**SIZE, "image_size": IMAGE, "patch_size": 8}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
SPEECH = {
    **SIZE, "vocab_size": 32, "conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 4),
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
    "classifier_proj_size": 16, "layerdrop": 0.0, "apply_spec_augment": False, "num_labels": CLASSES,
}  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """How a model of an architecture is made, and a training of it: data, the order of inputs, the loss."""

    kind: str
    head: str
    data: Callable[[], list[Tensor]]
    loss: Callable[[Any, Tensor], Tensor]
    options: Mapping[str, Any]
    keywords: tuple[str, ...] = ()

    def model(self) -> nn.Module:
        """The model, in training mode, with drawn weights."""
        import transformers

        config = transformers.AutoConfig.for_model(self.kind, **self.options)
        own = getattr(transformers, self.head)
        model: nn.Module = own.from_config(config) if hasattr(own, "from_config") else own(config)
        model = model.float().train()
        return Keywords(model, self.keywords) if self.keywords else model


class Keywords(nn.Module):
    """Gives inputs by name to a model whose forward has them in another order."""

    def __init__(self, inner: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.inner = inner
        self.names = list(names)

    def forward(self, *inputs: Tensor) -> Any:
        """The model's own output."""
        return self.inner(**dict(zip(self.names, inputs, strict=True)))


def _tokens() -> Tensor:
    return torch.randint(3, WORDS, (ROWS, LENGTH))


def _labels() -> Tensor:
    return torch.randint(0, CLASSES, (ROWS,))


def _texts() -> list[Tensor]:
    text = torch.randint(3, WORDS, (ROWS, LENGTH + 1))
    return [text[:, :-1].contiguous(), text[:, 1:].contiguous()]


def _padded(count: int) -> list[Tensor]:
    """Tokens and which of them are there."""
    present = (torch.arange(LENGTH) < torch.randint(4, LENGTH, (count, 1))).long()
    return [torch.where(present == 1, _tokens(), 0), present]


def _classified() -> list[Tensor]:
    return [*_padded(ROWS), _labels()]


def _masked() -> list[Tensor]:
    text, present = _padded(ROWS)
    hidden = torch.rand(ROWS, LENGTH) < 0.3
    hidden[:, 0] = True
    return [torch.where(hidden, 3, text), present, torch.where(hidden & (present == 1), text, -100)]


def _translated() -> list[Tensor]:
    text, present = _padded(ROWS)
    return [text, present, *_texts()]


def _images() -> list[Tensor]:
    return [torch.randn(ROWS, 3, IMAGE, IMAGE), _labels()]


def _maps() -> list[Tensor]:
    return [torch.randn(ROWS, 3, IMAGE, IMAGE), torch.randint(0, CLASSES, (ROWS, IMAGE // 4, IMAGE // 4))]


def _sounds() -> list[Tensor]:
    return [torch.randn(ROWS, SAMPLES), _labels()]


def _spoken() -> list[Tensor]:
    """Mel spectra, and what is said."""
    return [torch.randn(ROWS, 16, 2 * LENGTH), *_texts()]


def _captions() -> list[Tensor]:
    text = _tokens()
    text[:, -1] = 2
    return [text, torch.randn(ROWS, 3, IMAGE, IMAGE), torch.zeros(ROWS)]


def _pages() -> list[Tensor]:
    """Words, and the boxes around them on a page."""
    corners = torch.randint(0, 500, (ROWS, LENGTH, 2))
    return [_tokens(), torch.cat([corners, corners + torch.randint(1, 500, (ROWS, LENGTH, 2))], -1), _labels()]


def next_token(output: Any, target: Tensor) -> Tensor:
    """Cross entropy over all positions."""
    return functional.cross_entropy(output.logits.flatten(0, 1).float(), target.flatten())


def classes(output: Any, target: Tensor) -> Tensor:
    """Cross entropy of classes; positions come behind them."""
    return functional.cross_entropy(output.logits, target)


def contrast(output: Any, target: Tensor) -> Tensor:
    """Every text belongs to its image."""
    scores = output.logits_per_text
    labels = torch.arange(len(scores))
    return (functional.cross_entropy(scores, labels) + functional.cross_entropy(scores.t(), labels)) / 2


def _causal(kind: str, **options: Any) -> Architecture:
    return Architecture(kind, "AutoModelForCausalLM", _texts, next_token, {**DECODER, **options})


def _encoder(kind: str, **options: Any) -> Architecture:
    given = {**SIZE, **TEXT, "num_labels": CLASSES, **options}
    names = ("input_ids", "attention_mask")
    return Architecture(kind, "AutoModelForSequenceClassification", _classified, classes, given, names)


def _filled(kind: str, **options: Any) -> Architecture:
    """Masked language models."""
    names = ("input_ids", "attention_mask")
    return Architecture(kind, "AutoModelForMaskedLM", _masked, next_token, {**SIZE, **TEXT, **options}, names)


def _pair(kind: str, **options: Any) -> Architecture:
    return Architecture(kind, "AutoModelForSeq2SeqLM", _translated, next_token, {**PAIR, **options}, _BOTH)


def _image(kind: str, **options: Any) -> Architecture:
    given = {"num_labels": CLASSES, "image_size": IMAGE, **options}
    return Architecture(kind, "AutoModelForImageClassification", _images, classes, given)


_BOTH = ("input_ids", "attention_mask", "decoder_input_ids")
_T5 = {
    "vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "pad_token_id": 0,
    "decoder_start_token_id": 1,
}  # fmt: skip
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_DEEPSEEK = {
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_shared_experts": 1, "n_group": 1,
    "topk_group": 1, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
    "v_head_dim": 8, "first_k_dense_replace": 1, "num_key_value_heads": 4,
}  # fmt: skip
_TOWER = {**SIZE, "projection_dim": 16}
_STAGES = {"hidden_sizes": (8, 16, 24, 32), "depths": (1, 1, 2, 1)}

ARCHITECTURES: Mapping[str, Architecture] = {
    "GPT-2": _causal("gpt2", **GPT),
    "Llama": _causal("llama"),
    "Qwen2": _causal("qwen2"),
    "Qwen3": _causal("qwen3", head_dim=8),
    "BERT": _encoder("bert"),
    "BERT (masked)": _filled("bert"),
    "RoBERTa": _encoder("roberta"),
    "XLM-RoBERTa": _encoder("xlm-roberta"),
    "DistilBERT": _encoder("distilbert", dim=32, hidden_dim=48, n_layers=2, n_heads=4),
    "T5": Architecture("t5", "AutoModelForSeq2SeqLM", _translated, next_token, _T5, _BOTH),
    "mT5": Architecture("mt5", "AutoModelForSeq2SeqLM", _translated, next_token, _T5, _BOTH),
    "BART": _pair("bart"),
    "mBART": _pair("mbart"),
    "Pegasus": _pair("pegasus"),
    "Marian": _pair("marian"),
    "Mistral": _causal("mistral"),
    "Mixtral": _causal("mixtral", num_local_experts=4),
    "Gemma": _causal("gemma", head_dim=8),
    "Gemma 2": _causal("gemma2", head_dim=8, sliding_window=8),
    "Gemma 3 (text)": _causal("gemma3_text", head_dim=8, sliding_window=8),
    "Phi": _causal("phi"),
    "Phi-3": _causal("phi3"),
    "GPT-Neo": _causal("gpt_neo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=8),
    "GPT-NeoX": _causal("gpt_neox"),
    "GPT-J": _causal("gptj", rotary_dim=8, **GPT),
    "GPT-OSS": _causal("gpt_oss", head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=8),
    "OPT": _causal("opt", ffn_dim=48, word_embed_proj_dim=32),
    "BLOOM": _causal("bloom", n_layer=2, n_head=4),
    "Falcon": _causal("falcon", multi_query=True),
    "MPT": _causal("mpt", d_model=32, n_heads=4, n_layers=2, max_seq_len=64),
    "StableLM": _causal("stablelm"),
    "OLMo": _causal("olmo"),
    "OLMo 2": _causal("olmo2"),
    "OLMoE": _causal("olmoe", **{**_EXPERTS, "intermediate_size": 16}),
    "Granite": _causal("granite"),
    "Cohere": _causal("cohere"),
    "Qwen2-MoE": _causal("qwen2_moe", shared_expert_intermediate_size=24, **_EXPERTS),
    "Qwen3-MoE": _causal("qwen3_moe", head_dim=8, **_EXPERTS),
    "DeepSeek-V2": _causal("deepseek_v2", **_DEEPSEEK),
    "DeepSeek-V3": _causal("deepseek_v3", **_DEEPSEEK),
    "SmolLM3": _causal("smollm3"),
    "Mamba": _causal("mamba", state_size=4, expand=2, time_step_rank=4, hidden_size=16),
    "Mamba 2": _causal("mamba2", state_size=8, num_heads=8, head_dim=8, n_groups=2, chunk_size=4),
    "RWKV": _causal("rwkv", context_length=64, attention_hidden_size=32),
    "ALBERT": _encoder("albert", embedding_size=16),
    "ELECTRA": _encoder("electra", embedding_size=16),
    "DeBERTa": _encoder("deberta", relative_attention=True, pos_att_type="c2p|p2c", pooler_hidden_size=32),
    "DeBERTa-v2": _encoder(
        "deberta-v2", relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8,
        norm_rel_ebd="layer_norm", share_att_key=True, pooler_hidden_size=32, position_biased_input=False,
    ),
    "ModernBERT": _encoder("modernbert", local_attention=8, cls_token_id=1, sep_token_id=2),
    "MobileBERT": _encoder("mobilebert", embedding_size=16, intra_bottleneck_size=32, true_hidden_size=32),
    "MPNet": _encoder("mpnet"),
    "XLNet": Architecture(
        "xlnet", "AutoModelForSequenceClassification", _classified, classes,
        {"vocab_size": WORDS, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "num_labels": CLASSES},
        ("input_ids", "attention_mask"),
    ),
    "Longformer": _encoder("longformer", attention_window=[4, 4]),
    "LayoutLM": Architecture(
        "layoutlm", "AutoModelForSequenceClassification", _pages, classes, {**SIZE, **TEXT, "num_labels": CLASSES},
        ("input_ids", "bbox"),
    ),
    "ViT": _image("vit", **VISION),
    "DeiT": Architecture(
        "deit", "DeiTForImageClassification", _images, classes, {"num_labels": CLASSES, **VISION}
    ),
    "BEiT": _image("beit", use_relative_position_bias=True, **VISION),
    "DINOv2": _image("dinov2", **VISION),
    "Swin": _image("swin", embed_dim=8, depths=(2, 2), num_heads=(2, 4), window_size=4, patch_size=2),
    "Swin v2": _image("swinv2", embed_dim=8, depths=(2, 2), num_heads=(2, 4), window_size=4, patch_size=2),
    "ConvNeXt": _image("convnext", **_STAGES),
    "ConvNeXt v2": _image("convnextv2", **_STAGES),
    "ResNet": _image("resnet", embedding_size=8, hidden_sizes=(16, 24), depths=(1, 2), layer_type="bottleneck"),
    "MobileNet v2": _image("mobilenet_v2", depth_multiplier=0.25, depth_divisible_by=4),
    "MobileViT": _image(
        "mobilevit", hidden_sizes=(16, 24, 32), neck_hidden_sizes=(8, 8, 16, 16, 24, 32, 40), num_attention_heads=2,
    ),
    "SegFormer": Architecture(
        "segformer", "AutoModelForSemanticSegmentation", _maps, classes,
        {
            "num_labels": CLASSES, "hidden_sizes": (8, 8, 16, 16), "num_attention_heads": (1, 1, 2, 2),
            "depths": (1, 1, 1, 1), "decoder_hidden_size": 16, "mlp_ratios": (2, 2, 2, 2),
        },
    ),
    "CLIP": Architecture(
        "clip", "AutoModel", _captions, contrast,
        {
            "projection_dim": 16, "text_config": {**_TOWER, **TEXT}, "vision_config": {**VISION, "projection_dim": 16},
        },
        ("input_ids", "pixel_values"),
    ),
    "SigLIP": Architecture(
        "siglip", "AutoModel", _captions, contrast,
        {"text_config": {**SIZE, **TEXT, "projection_size": 32}, "vision_config": VISION},
        ("input_ids", "pixel_values"),
    ),
    "Whisper": Architecture(
        "whisper", "AutoModelForSpeechSeq2Seq", _spoken, next_token,
        {**PAIR, "num_mel_bins": 16, "max_source_positions": LENGTH, "max_target_positions": 64},
        ("input_features", "decoder_input_ids"),
    ),
    "Wav2Vec2": Architecture("wav2vec2", "AutoModelForAudioClassification", _sounds, classes, SPEECH),
    "HuBERT": Architecture("hubert", "AutoModelForAudioClassification", _sounds, classes, SPEECH),
}  # fmt: skip
"""By name, about in the order of downloads."""


@dataclass(frozen=True)
class Outcome:
    """The capture of one architecture; `refusal` is empty where it succeeded."""

    name: str
    parameters: int
    nodes: int
    seconds: float
    refusal: str


def outcome(name: str, check: bool = True) -> Outcome:
    """Capture a training of one architecture, self-check included."""
    architecture = ARCHITECTURES[name]
    torch.manual_seed(0)
    model, data = architecture.model(), architecture.data()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    order = torch.randint(0, ROWS, (STEPS, BATCH))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    began = time.monotonic()
    nodes, refusal = 0, ""
    try:
        nodes = len(capture(model, architecture.loss, optimizer, data, order, check=check).program.nodes)
    except UnsupportedError as error:
        refusal = str(error)
    return Outcome(name, parameters, nodes, time.monotonic() - began, refusal)


def outcomes(names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Each architecture in turn; all of them without names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names or ARCHITECTURES:
            yield outcome(name)


def hugging_face_figures() -> dict[str, Figure]:
    """The share of architectures that a capture accepts, and the slowest capture of a small program."""
    found = list(outcomes())
    captured = [item for item in found if not item.refusal]
    return {
        "capture_share_huggingface": Figure(len(captured) / len(found), f"of {len(found)} architectures"),
        "capture_seconds_worst": Figure(
            max(item.seconds for item in captured if item.nodes < SMALL_NODES), f"s, below {SMALL_NODES} nodes"
        ),
    }


def document(found: Sequence[Outcome]) -> str:
    """The text of docs/models.md."""
    count = sum(not item.refusal for item in found)
    lines = [
        "# Hugging Face models",
        "",
        "Written by `PYTHONPATH=tests python -m lab.benchmarks.hugging_face > docs/models.md`; do not edit.",
        "",
        f"Classes of transformers, unmodified and at toy size, each in a training step with AdamW: {count} of "
        f"{len(found)} are",
        "captured. A capture includes its self-check. The table is ordered about by downloads; its size says nothing",
        "about larger models of the same architecture, which have the same operations.",
        "",
        "| architecture | parameters | nodes | result |",
        "| --- | --- | --- | --- |",
    ]
    for item in found:
        result = item.refusal.replace("|", "\\|") or "captured"
        lines.append(f"| {item.name} | {item.parameters:,} | {item.nodes or '-'} | {result} |")
    return "\n".join(lines) + "\n"


def main(names: Sequence[str]) -> None:
    """Print the table; the progress and the seconds go to the error stream."""
    found = []
    for item in outcomes(names):
        found.append(item)
        print(f"{item.name}: {item.seconds:.1f} s, {item.nodes} nodes {item.refusal}", file=sys.stderr, flush=True)
    print(document(found), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
