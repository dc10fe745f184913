"""Vectors of collectives for other implementations, computed in NumPy; run as a script, this file writes them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from numpy_collectives import CHUNK, integers, ordered

from lab.json_rows import json_rows
from pol.collectives.chunk_quantization import ChunkLayout, ChunkScales, magnitudes
from pol.collectives.rank_order import OPERATIONS, fold_ranks, scaled, settled

pytestmark = pytest.mark.rules
FILE = Path(__file__).resolve().parent.parent.parent / "fixtures" / "vectors" / "collectives.json"
EDGES = (0, 1 << 31, 1, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000)


def operands(ranks: int, size: int, finite: bool) -> list[NDArray[np.float32]]:
    random = np.random.default_rng([ranks, size])
    rows = []
    for _ in range(ranks):
        row = (random.standard_normal(size) * 2.0 ** random.integers(-8, 8, size)).astype(np.float32)
        if not finite:
            words = row.view(np.uint32)
            places = random.choice(size, size // 3, replace=False)
            words[places] = random.choice(np.array(EDGES, np.uint32), size // 3)
        rows.append(row)
    return rows


def told(floats: NDArray[np.float32]) -> str:
    """The elements' bytes, little-endian."""
    return "0x" + floats.astype("<f4").tobytes().hex()


def read(text: str) -> NDArray[np.float32]:
    return np.frombuffer(bytes.fromhex(text[2:]), "<f4").astype(np.float32)


def vectors() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {"ordered": [], "integers": []}
    for ranks in (1, 2, 3, 5, 8, 13):
        rows = operands(ranks, 32, finite=False)
        results = [
            {**options, "result": told(ordered(rows, **options))}
            for options in (
                {"operation": operation, "order": order, "roster": roster}
                for operation in ("sum", "mean")
                for order in ("ascending", "tree")
                for roster in (list(range(ranks)), list(range(ranks))[::-1])
            )
        ]
        found["ordered"].append({"ranks": list(map(told, rows)), "results": results})
    for ranks, bits, size in ((1, 8, 5), (2, 3, 20), (3, 8, 1040), (3, 16, 40), (5, 24, 40)):
        rows = operands(ranks, size, finite=True)
        rows[-1][:3] = 2.0**-130, -0.0, 2.0**-149
        if size > CHUNK:
            rows[1][CHUNK + 9] = np.inf
        (total, rests), (mean, _) = integers(rows, "sum", bits), integers(rows, "mean", bits)
        case = {"bits": bits, "ranks": list(map(told, rows)), "rests": list(map(told, rests))}
        found["integers"].append({**case, "sum": told(total), "mean": told(mean)})
    return found


def test_the_vectors_hold() -> None:
    assert json.loads(FILE.read_text()) == vectors()


def test_the_package_computes_them() -> None:
    cases = json.loads(FILE.read_text())
    for case in cases["ordered"]:
        for result in case["results"]:
            rows = [torch.from_numpy(read(case["ranks"][rank])) for rank in result["roster"]]
            total = scaled(fold_ranks(rows, result["order"]), result["operation"], len(rows))
            assert told(settled(total, torch.float32).numpy()) == result["result"]
    for case in cases["integers"]:
        rows = [torch.from_numpy(read(text)) for text in case["ranks"]]
        layout = ChunkLayout([len(rows[0])])
        chunks = [layout.chunks([row]) for row in rows]
        scales = ChunkScales.of(torch.stack([magnitudes(c) for c in chunks]).amax(0), case["bits"])
        quantized = [scales.quantize(c, torch.int32) for c in chunks]
        sums = torch.stack([q.to(torch.int64) for q in quantized]).sum(0)
        for operation in OPERATIONS:
            result = torch.empty_like(chunks[0])
            scales.restore(sums, operation, len(rows), result)
            assert told(layout.pieces(result)[0].numpy()) == case[operation]
        rests = [layout.pieces(scales.rest(c, q))[0] for c, q in zip(chunks, quantized, strict=True)]
        assert [told(rest.numpy()) for rest in rests] == case["rests"]


if __name__ == "__main__":
    FILE.write_text(json_rows(vectors()))
