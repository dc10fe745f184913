"""Sets a circuit up: reference string, circuit, keys and verifier. Each is made once and kept."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import rfc8785

import pol
from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.zk import native_process
from pol.zk.circuits import Circuit, Visibility
from pol.zk.ezkl import reference_string

Progress = Callable[[str, int, int], None]
STAGES = ("reference string", "network", "settings", "circuit", "keys", "verifier")


@dataclass(frozen=True)
class KeySummary:
    """The record of keys in a manifest; digests are SHA-256 of files, in hex, but for the network's (keccak-256)."""

    circuit: str
    visibility: str
    ezkl: str
    logrows: int
    rows: int
    network: str
    reference_string: str
    test_only: bool
    verification_key: str
    verifier: str
    verification_key_bytes: int
    proving_key_bytes: int


@dataclass(frozen=True)
class Keys:
    """The files of one circuit, one visibility and one reference string, in a folder named by their digest."""

    circuit: Circuit
    visibility: Visibility
    folder: Path
    reference_string: Path

    @property
    def name(self) -> str:
        """A digest, in hex, of everything that the keys depend on."""
        return self.folder.name

    def file(self, name: str) -> str:
        """Path of a file of the folder."""
        return str(self.folder / name)

    @property
    def summary(self) -> KeySummary:
        """Raises OperationalError if the keys aren't set up."""
        try:
            return KeySummary(**canonical_json.parse((self.folder / "summary.json").read_bytes(), "the summary"))
        except (OSError, ProtocolError, TypeError) as error:
            raise OperationalError(f"the keys of {self.circuit.name} aren't set up: pol zk setup") from error

    @property
    def is_test_only(self) -> bool:
        """Whether the secret of the reference string is public, so that proofs can be forged."""
        return self.summary.test_only


def setup(
    circuit: Circuit,
    root: Path,
    visibility: Visibility | None = None,
    ceremony: Path | None = None,
    progress: Progress = lambda stage, done, of: None,
) -> Keys:
    """Make the files of a circuit that are missing; an interrupt loses one stage at most.

    ``ceremony``: a powers-of-tau file. Without one the secret of the reference string is public.
    Raises ProtocolError if the circuit isn't made for the visibility or the ceremony's file is bad, OperationalError if
    EZKL or space is missing.
    """
    native_process.require()
    visibility = visibility or circuit.visibility
    logrows = circuit.logrows_of(visibility)
    root.mkdir(parents=True, exist_ok=True)
    string = _reference_string(root, logrows, ceremony, lambda done, of: progress(STAGES[0], done, of))
    string_digest = _remembered(string)
    depends_on = (circuit.digest(visibility), native_process.VERSION.encode(), bytes.fromhex(string_digest))
    keys = Keys(circuit, visibility, root / keccak256(b"".join(depends_on)).hex(), string)
    keys.folder.mkdir(exist_ok=True)
    if (keys.folder / "summary.json").is_file():
        return keys
    progress("network", 0, 1)
    # Needs the extra proof-of-learning[zk]; proofs are verified without it.
    from pol.zk.ezkl.onnx_file import onnx_file

    _make(keys, ("network.onnx",), lambda out: Path(out).write_bytes(onnx_file(circuit.network)))
    progress("settings", 0, 1)
    _make(
        keys,
        ("settings.json",),
        lambda out: native_process.call(
            "settings",
            model=keys.file("network.onnx"),
            out=out,
            visibility=str(visibility),
            scale=circuit.network.scale,
            base=circuit.base,
            legs=circuit.digits,
            logrows=logrows,
        ),
    )
    settings = canonical_json.parse((keys.folder / "settings.json").read_bytes(), "the settings")
    _require_same_rule(circuit, settings)
    progress("circuit", 0, 1)
    model = {"model": keys.file("network.onnx"), "settings": keys.file("settings.json")}
    _make(keys, ("circuit.ezkl",), lambda out: native_process.call("compile_circuit", None, **model, out=out))
    progress("keys", 0, 1)
    _make(
        keys,
        ("verification.key", "proving.key"),
        lambda verification_key, proving_key: native_process.call(
            "setup",
            circuit=keys.file("circuit.ezkl"),
            reference_string=str(string),
            verification_key=verification_key,
            proving_key=proving_key,
        ),
    )
    progress("verifier", 0, 1)
    given = {"verification_key": keys.file("verification.key"), "settings": keys.file("settings.json")}

    def write_verifier(out: str, abi: str) -> None:
        native_process.call("verifier", None, **given, reference_string=str(string), out=out, abi=abi)
        Path(abi).touch()

    _make(keys, ("verifier.sol", "verifier.abi"), write_verifier)
    summary = KeySummary(
        circuit.name,
        str(visibility),
        native_process.VERSION,
        logrows,
        settings["num_rows"],
        circuit.network.digest.hex(),
        string_digest,
        reference_string.is_test_only(string),
        reference_string.digest(keys.folder / "verification.key"),
        reference_string.digest(keys.folder / "verifier.sol"),
        (keys.folder / "verification.key").stat().st_size,
        (keys.folder / "proving.key").stat().st_size,
    )
    _make(keys, ("summary.json",), lambda out: Path(out).write_bytes(rfc8785.dumps(asdict(summary))))
    return keys


def _require_same_rule(circuit: Circuit, settings: dict[str, Any]) -> None:
    scales = {*settings["model_input_scales"], *settings["model_output_scales"]}
    if scales != {circuit.network.scale}:
        raise ProtocolError(
            f"EZKL gives {circuit.name} the scales {sorted(scales)}: the result can't be the next input"
        )


def _reference_string(root: Path, logrows: int, ceremony: Path | None, progress: reference_string.Progress) -> Path:
    if ceremony is None:
        path = root / f"test-only-{logrows}.srs"
        if not path.is_file():
            reference_string.write_test_only(path, logrows, progress)
        return path
    path = root / f"ceremony-{reference_string.digest(ceremony)[:16]}-{logrows}.srs"
    if not path.is_file():
        reference_string.write_from_ceremony(path, ceremony, logrows)
    return path


def _remembered(string: Path) -> str:
    """The digest of a reference string, which is large, computed once."""
    note = string.with_name(string.name + ".sha256")
    if not note.is_file():
        note.write_text(reference_string.digest(string))
    return note.read_text().strip()


def _make(keys: Keys, names: Sequence[str], write: Callable[..., object]) -> None:
    """Write files under temporary names, then give them their names together; nothing if all are there."""
    if all((keys.folder / name).is_file() for name in names):
        return
    parts = [keys.folder / f"{name}.part" for name in names]
    write(*map(str, parts))
    for part, name in zip(parts, names, strict=True):
        part.replace(keys.folder / name)


LARGEST = 24_576
"""The most bytes of code of a contract (EIP-170)."""


def compiler(given: str | None = None) -> str:
    """The Solidity compiler: the one given, else ``solc`` on the PATH, else that of a checkout that is set up.

    Raises OperationalError if there is none.
    """
    checkout = Path(pol.__file__).parent.parent / ".ci" / "solc"
    found = shutil.which(given or "solc") or (str(checkout) if given is None and checkout.is_file() else None)
    if found is None:
        raise OperationalError(f"there is no compiler {given or 'solc'}: name one of version 0.8 with --solc")
    return found


def bytecode(keys: Keys, solc: str) -> tuple[str, int]:
    """Creation code in hex, and the size of the code that stays on the chain.

    Raises OperationalError if the compiler refuses, or the contract is too large.
    """
    # The pragma of the generator names one compiler; every version 0.8 compiles the source.
    source = re.sub(r"pragma solidity [^;]+;", "pragma solidity ^0.8.0;", Path(keys.file("verifier.sol")).read_text())
    request = {
        "language": "Solidity",
        "sources": {"verifier.sol": {"content": source}},
        "settings": {
            "optimizer": {"enabled": True, "runs": 1},
            "evmVersion": "shanghai",
            "metadata": {"bytecodeHash": "none", "appendCBOR": False},
            "outputSelection": {"*": {"*": ["evm.bytecode.object", "evm.deployedBytecode.object"]}},
        },
    }
    command = [solc, "--standard-json"]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    try:
        made = json.loads(done.stdout)
        (contract,) = made["contracts"]["verifier.sol"].values()
    except (ValueError, KeyError) as error:
        raise OperationalError(f"{solc} did not compile the verifier: {(done.stdout + done.stderr)[:500]}") from error
    size = len(contract["evm"]["deployedBytecode"]["object"]) // 2
    if size > LARGEST:
        raise OperationalError(f"the verifier has {size} bytes; a chain takes {LARGEST}")
    return "0x" + contract["evm"]["bytecode"]["object"], size
