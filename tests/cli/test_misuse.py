"""What people get wrong: every sort ends in one line that says what happened and what to do, and never in a traceback.

Exit codes: docs/guides/commit.md. A line names its files by `{name}`: see `Misused`.
"""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from eth_account import Account
from safetensors.torch import save_file

from anvil_node import anvil_node
from cli_runner import Said, pol
from pol import Recorder
from pol.commitments import canonical_json
from pol.training import Checkpoints
from pol.training.record.learning_record import HEAD

RICH = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
"""The first account of anvil."""
DIGEST = "00" * 32
NO_NODE = "http://127.0.0.1:1"
MARKET = ("--deployment", "{deployment}", "--rpc", "{node}", "--store", "{store}")
STAKE = ("stake", "show", *MARKET)
KEY = ("--key", "{plain_key}")
OTHERS = 65534
"""The user nobody."""

FILES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "a wrong path": (("commit", "{none}"), 3, "there is no file or folder"),
    "a wrong path of a document": (("check", "{model}", "{none}"), 3, "it isn't there: check the path"),
    "a wrong path of a store": (("log", "{none}"), 3, "it isn't there: check the path"),
    "nothing to check": (("check", "{none}"), 3, "can't read {none}: it does not exist"),
    "nothing to compare": (("diff", "{none}", "{none}"), 3, "there is no file or folder"),
    "nothing to inspect": (("inspect", "{none}"), 3, "there is no file or folder"),
    "nothing to verify": (("verify", "{none}", DIGEST, "--exact"), 3, "there is no store {none}: name a folder"),
    "nothing to profile": (("profile", "{none}", DIGEST), 3, "from {none}: it isn't there: check the path"),
    "nothing to replay": (("replay", "{none}"), 3, "make it with: pol demo --out {none}"),
    "nothing to serve": (("serve", "{none}"), 3, "there is no store {none}: name a folder"),
    "no exact proof": (("zk", "exact", "verify", "{none}"), 3, "it isn't there: check the path"),
    "a wrong path in a URL": (("serve", "file://{none}"), 3, "name a folder, or a URL"),
    "a folder that isn't there": (("commit", "{model}", "--out", "{none}/x.json"), 3, "check the path"),
    "a corrupted file": (("commit", "{corrupt}"), 1, "isn't a safetensors file"),
    "a half-written file": (("commit", "{half}"), 1, "isn't a safetensors file: it states a header of"),
    "a half-written document": (("check", "{model}", "{half_json}"), 1, "damaged, half-written or another file"),
    "a half-written record": (("log", "{half_record}"), 1, "damaged, half-written or another file"),
    "an empty file": (("commit", "{empty}"), 1, "has 0 bytes"),
    "an empty document": (("check", "{model}", "{empty}"), 1, "damaged, half-written or another file"),
    "JSON in place of safetensors": (("commit", "{json}"), 1, "isn't a safetensors file"),
    "safetensors in place of JSON": (("check", "{model}", "{model}"), 1, "isn't valid JSON"),
    "another document": (
        ("log", "{run}", "--since", "{commitment}"),
        1,
        "the signed head isn't a pol/log-head: its kind is 'pol/commitment'",
    ),
    "a folder where a file is meant": (("check", "{model}", "{folder}"), 3, "Is a directory: name a file"),
    "a folder where a file is written": (("commit", "{model}", "--out", "{folder}"), 2, "is a directory"),
    "a file where a folder is meant": (("serve", "{model}"), 3, "there is no store {model}: name a folder"),
    "a file in place of a folder of disputes": (("replay", "{model}"), 3, "make it with: pol demo --out {model}"),
    "a full disk": (("commit", "{model}", "--out", "/dev/full"), 3, "No space left on device: make room, or write"),
    "brackets without end": (("inspect", "{deep}"), 1, "nested deeper than 64"),
    "brackets as a proof": (("zk", "verify", "{deep}"), 1, "nested deeper than 64"),
    "brackets as an exact proof": (("zk", "exact", "verify", "{deep}"), 1, "nested deeper than 64"),
    "brackets as a deployment": (("report", "--rpc", NO_NODE, "--deployment", "{deep}"), 1, "nested deeper than 64"),
    "an old record": (("log", "{old_record}"), 1, "no release has written another one: ask its author"),
    "a newer record": (("diff", "{new_record}", "{run}"), 1, "pip install --upgrade proof-of-learning"),
    "an unknown step": (("check", "{run}@99"), 3, "has no checkpoint of step 99: it has 2 from 0 to 1"),
    "an object that isn't there": (("inspect", "{run}", DIGEST), 3, "it isn't there: check the path"),
    "no digest": (("inspect", "{run}", "zz"), 2, "64 lower-case hexadecimal digits"),
    "a negative size of a log": (("log", "{run}", "--consistency", "-1", "2"), 2, "sizes are from 1 to 2"),
    "a log that shrinks": (("log", "{run}", "--consistency", "2", "1"), 2, "the smaller one first"),
    "a log of the future": (("log", "{run}", "--consistency", "2", "999"), 2, "sizes are from 1 to 2"),
    "no signer": (("log", "{run}", "--signer", "zz"), 2, "64 hexadecimal digits"),
    "no key for a log": (("log", "{run}", "--in-toto", "x", "--key", "{empty}"), 2, "holds no private key"),
    "no key for a profile": (("profile", "{run}", DIGEST, "--key", "{empty}"), 2, "holds no private key"),
    "a record without a task": (("verify", "{run}", "--exact"), 2, "`pol check RECORD` verifies its checkpoints"),
    "a file that is no digest": (("verify", "{run}", "{model}"), 2, "doesn't hold 32 bytes in hexadecimal"),
    "a key that is none": (("worker", "{run}", "--key", "{json}"), 2, "holds no private key in PEM form"),
    "a key that isn't there": (("worker", "{run}", "--key", "{none}"), 3, "make one with: openssl genpkey"),
    "a store of an unknown sort": (("log", "gopher://x/y"), 3, "name a folder, file://, https:// or s3://"),
    "an unreachable store": (("log", f"{NO_NODE}/x"), 3, "is the server running, and is the address right?"),
    "an unreachable store to serve": (("serve", f"{NO_NODE}/x"), 3, "is the server running"),
    "an unreachable bucket": (("log", "s3://bucket"), 3, "is the server running, and is the address right?"),
    "an unreachable relay": (("beacon", "--round", "5", "--relay", NO_NODE), 3, "name another relay"),
    "a port in use": (("serve", "{run}", "--port", "{port}"), 3, "Address already in use: choose another port"),
    "an address of elsewhere": (("serve", "{run}", "--host", "203.0.113.1"), 3, "name an address of this machine"),
    "a script that isn't there": (("capture", "--check", "{none}.py"), 3, "give the path of a Python script"),
    "a script that doesn't import": (("capture", "--check", "{no_import}"), 3, "let it run by itself first"),
    "a script that fails in two lines": (("capture", "--check", "{two_lines}"), 3, "ValueError: one two: let it run"),
    "a script that captures nothing": (("capture", "--check", "{silent}"), 3, "let it call pol.capture(...)"),
    "a function that isn't there": (("capture", "--check", "{silent}:make"), 3, "name one that takes no arguments"),
    "a GPU that isn't there": (("selftest", "--device", "cuda:7"), 3, "CUDA"),
    "a device of an unknown sort": (("selftest", "--device", "tpu"), 2, "name cpu, cuda, cuda:1"),
    "an unknown circuit": (("zk", "prove", "nothing"), 3, "there is no circuit nothing; pol has"),
    "an unknown shell": (("completion", "cmd"), 2, "'bash', 'zsh', 'fish'"),
    "a negative number": (("sample", "--segments", "-4"), 2, "is not in the range 1<=x"),
    "zero": (("verify", "{run}", "--exact", "--draws", "0"), 2, "is not in the range x>=1"),
    "no number": (("sample", "--segments", "many"), 2, "'many' is not a valid integer"),
    "not a number": (("verify", "{run}", "--exact", "--wait", "nan"), 2, "'nan' is no finite number"),
    "infinity": (("worker", "{run}", "--poll", "inf"), 2, "inf"),
    "a share above one": (("verify", "{run}", "--confidence", "2"), 2, "isn't above 0 and up to 1"),
    "a round beyond 64 bits": (("beacon", "--round", "1" + "0" * 26), 2, "18446744073709551615"),
    "a time beyond all rounds": (("beacon", "--after", "1" + "0" * 30), 2, "there is no round"),
    "a signature that is none": (("beacon", "--round", "5", "--signature", "zz"), 2, "hexadecimal"),
    "no time": (("beacon", "--after", "yesterday"), 2, "write seconds since 1970"),
    "a misspelled verb": (("verfy",), 2, "Did you mean 'verify'?"),
    "a misspelled option": (("verify", "--exct"), 2, "Did you mean '--exact'?"),
    "an unknown option": (("verify", "--xyzzy"), 2, "`pol verify --help` shows what there is"),
    "an argument too many": (("log", "{run}", "{run}"), 2, "`pol log --help` shows what there is"),
    "an argument too few": (("verify",), 2, "`pol verify --help` shows what there is"),
    "a deployment that isn't there": (("report", "--rpc", NO_NODE, "--deployment", "{none}"), 3, "check the path"),
    "a folder as deployment": (("report", "--rpc", NO_NODE, "--deployment", "{folder}"), 3, "name a file"),
    "a deployment that is none": (("report", "--rpc", NO_NODE, "--deployment", "{json}"), 1, "`pol deploy` wrote"),
    "a deployment in no text": (("report", "--rpc", NO_NODE, "--deployment", "{model}"), 1, "see `pol deploy`"),
    "no options": (("stake", "show"), 2, "once for all: `pol config set deployment"),
    "no key of a funder": (("demo", "--funder-key", "xyz"), 2, "a private key of 64 hexadecimal digits"),
    "a key of zeros": (("demo", "--funder-key", "00" * 32), 2, "a private key of 64 hexadecimal digits"),
    "a negative seed": (("demo", "--seed", "-1"), 2, "is not in the range"),
    "a story under a file": (("demo", "--out", "{model}/story"), 3, "name another folder with --out"),
    "a story on no node": (("demo", "--rpc", NO_NODE), 3, "Is the node running"),
    "an unknown benchmark": (("bench", "nothing"), 2, "no area nothing; there are: demo"),
    "no program": (("doctor",), 2, "`pol doctor --help` shows what there is"),
}
CHAIN: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no node": (("stake", "show", *MARKET, *KEY, "--rpc", NO_NODE), 3, "Is the node running, and is the URL right?"),
    "no URL of a node": (("stake", "show", *MARKET, *KEY, "--rpc", "ftp://x"), 3, "is the URL right?"),
    "a wrong chain id": (("deploy", "--network", "anvil", "--rpc", "{other_node}", *KEY), 3, "is of chain 1337"),
    "a deployment of another chain": (
        ("stake", "show", "--deployment", "{deployment}", "--rpc", "{other_node}", "--store", "{store}", *KEY),
        3,
        "is chain 1337, the contracts are on 31337: name a node of their chain with --rpc",
    ),
    "no key": (STAKE, 2, "name one signer: --key FILE"),
    "two keys": ((*STAKE, *KEY, "--key-env", "X"), 2, "name one signer"),
    "a key file that isn't there": ((*STAKE, "--key", "{none}"), 3, "check the path"),
    "a folder as key": ((*STAKE, "--key", "{shut_folder}"), 3, "name a file"),
    "a file that is no key": ((*STAKE, "--key", "{junk}", "--passphrase", "{pass}"), 1, "geth, clef, cast or eth_acc"),
    "a wrong passphrase": ((*STAKE, "--key", "{keystore}", "--passphrase", "{junk}"), 1, "the passphrase doesn't open"),
    "no passphrase": ((*STAKE, "--key", "{keystore}"), 3, "name a file that has it"),
    "a key of another account": (
        (*STAKE, "--key", "{other_keystore}", "--passphrase", "{pass}"),
        1,
        "says that it is of another address than its key's",
    ),
    "a key that all may read": ((*STAKE, "--key", "{open_key}"), 1, "run chmod 600 {open_key}"),
    "a key in place of its file": ((*STAKE, "--key", RICH), 2, "name the file"),
    "a variable that isn't set": ((*STAKE, "--key-env", "NOBODY"), 1, "isn't set: it should hold a private key"),
    "an unfunded account": (("stake", "deposit", "1", *MARKET, "--key", "{poor_key}"), 3, "Send it coins for gas"),
    "an empty vault": (("stake", "enrol", *MARKET, *KEY), 1, "bring it by `pol stake deposit"),
    "more than is free": (("stake", "withdraw", "5", *MARKET, *KEY), 1, "the vault has 0 wei for this"),
    "nothing to deposit": (("stake", "deposit", "0", *MARKET, *KEY), 2, "say how much"),
    "an amount that is none": (("stake", "deposit", "nan", *MARKET, *KEY), 2, "write 1.5, or 1500000000wei"),
    "an infinite amount": (("stake", "deposit", "inf", *MARKET, *KEY), 2, "write 1.5, or 1500000000wei"),
    "no tickets": (("stake", "enrol", "--tickets", "0", *MARKET, *KEY), 2, "is not in the range x>=1"),
    "no task yet": (("explain", *MARKET), 1, "this market has no task yet: submit one"),
    "an unknown task": (("explain", "ffffffff", *MARKET), 1, "0 of 0 tasks begin with ffffffff: name eight digits"),
    "an unknown dispute": (("explain", "1", *MARKET), 1, "another matter: --about profile"),
    "an unknown transaction": (("explain", "0x" + DIGEST, *MARKET), 3, "is it of this chain, and complete?"),
    "a task that isn't in the store": (("price", DIGEST, *MARKET), 3, "it isn't there: check the path"),
    "a proof of another task": (
        ("object", "{store}", "ab" * 32, "--segment", "0", "--dry-run", *MARKET[:4], *KEY),
        1,
        "no solver of this market has committed to proof",
    ),
    "an unknown role": (("run", "judge", *MARKET, *KEY), 2, "is not one of 'keeper', 'solver'"),
    "a store that is a file": (("run", "verifier", *MARKET[:4], "--store", "{json}", *KEY), 3, "name a folder"),
    "a file in place of the party's folder": (
        ("run", "verifier", *MARKET, *KEY, "--turns", "1", "--data", "{json}"),
        3,
        "name another",
    ),
    "memory without end": (("run", "verifier", *MARKET, *KEY, "--step-memory", "inf"), 2, "is no finite number"),
    "time that is no number": (("monitor", *MARKET[:4], "--poll", "nan"), 2, "is no finite number"),
    "a port of metrics in use": (
        ("monitor", *MARKET[:4], "--looks", "1", "--metrics", "127.0.0.1:{port}"),
        3,
        "for --metrics: Address already in use: choose another port",
    ),
    "a port of the explorer in use": (("explore", *MARKET, "--port", "{port}"), 3, "choose another port"),
    "a page that can't be written": (("report", *MARKET, "--out", "{none}/x.html"), 3, "check the path"),
    "parameters that are none": (("deploy", "--rpc", "{node}", *KEY, "--parameters", "{junk}"), 1, "aren't TOML"),
    "parameters in no text": (("deploy", "--rpc", "{node}", *KEY, "--parameters", "{model}"), 1, "UTF-8"),
}


class Misused:
    """A folder with files of every sort; ``names`` are those of the tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, str | int] = {"none": str(folder / "none")}
        torch.set_num_threads(1)
        model = torch.nn.Linear(2, 2)
        with Recorder(f"file://{folder}/run", model, every=1, checkpoints=Checkpoints(background=False)) as recorder:
            recorder.resume()
            recorder.step()
        self.names["run"] = str(folder / "run")
        save_file(model.state_dict(), folder / "model.safetensors")
        self.names["model"] = str(folder / "model.safetensors")
        data = (folder / "model.safetensors").read_bytes()
        self.file("corrupt", bytes([*data[:5], data[5] ^ 255, *data[6:]]))
        self.file("half", data[: len(data) // 2])
        self.file("empty", b"")
        self.file("json", b'{"layer":[1,2,3]}')
        # The parser recurses in C, and the EVM in Python lifts the bound that would stop it.
        self.file("deep", b'{"a":' * 200_000 + b"0" + b"}" * 200_000)
        pol("commit", self.names["model"], "--out", folder / "commitment")
        self.names["commitment"] = str(folder / "commitment")
        self.file("half_json", (folder / "commitment").read_bytes()[:50])
        self.record("half_record", lambda head: head[: len(head) // 2])
        for name, version in (("old_record", 0), ("new_record", 2)):
            self.record(name, lambda head, v=version: canonical_json.encode({**json.loads(head), "version": v}))
        for name in ("folder", "store", "shut_folder"):
            (folder / name).mkdir(mode=0o700)
            self.names[name] = str(folder / name)
        self.file("no_import", b"import nothing_of_this_name\n")
        self.file("two_lines", b"raise ValueError('one\\ntwo')\n")
        self.file("silent", b"x = 1\n")

    def file(self, name: str, content: bytes, mode: int = 0o600) -> None:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(mode)
        self.names[name] = str(path)

    def record(self, name: str, change: Callable[[bytes], bytes]) -> None:
        shutil.copytree(self.folder / "run", self.folder / name)
        head = self.folder / name / HEAD
        head.write_bytes(change(head.read_bytes()))
        self.names[name] = str(self.folder / name)

    def line(self, words: tuple[str, ...]) -> list[str]:
        return [word.format_map(self.names) for word in words]


@pytest.fixture(scope="module")
def misused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Misused]:
    made = Misused(tmp_path_factory.mktemp("misused"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        made.names["port"] = taken.getsockname()[1]
        yield made


@pytest.fixture(scope="module")
def market(misused: Misused) -> Iterator[Misused]:
    """And a market on a node, another node, and keys."""
    misused.file("plain_key", RICH.encode())
    misused.file("open_key", RICH.encode(), mode=0o644)
    misused.file("poor_key", ("11" * 32).encode())
    misused.file("junk", b"hello\n")
    misused.file("pass", b"secret\n")
    keystore = Account.encrypt(RICH, "secret", kdf="scrypt", iterations=16)
    misused.file("keystore", json.dumps(keystore).encode())
    misused.file("other_keystore", json.dumps({**keystore, "address": "00" * 20}).encode())
    with anvil_node(hardfork="osaka") as node, anvil_node("--chain-id", "1337", hardfork="osaka") as other:
        deployed = pol("deploy", "--rpc", node, "--network", "anvil", *misused.line(KEY), "--out", misused.folder)
        assert deployed.code == 0, deployed.out
        misused.names |= {"deployment": str(misused.folder / "31337.json"), "node": node, "other_node": other}
        yield misused


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of this user; a bucket that nobody serves."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_MAX_ATTEMPTS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", NO_NODE)


def require_one_line(said: Said, code: int, told: str) -> None:
    assert (said.code, said.out.count("\n")) == (code, 1), said.out
    assert said.out.startswith("pol: ")
    assert told in said.out
    assert "Errno" not in said.out


def require_json(said: Said, code: int, told: str) -> None:
    document = json.loads(said.out)
    assert (said.code, list(document)) == (code, ["error"])
    assert told in document["error"]


def json_too(case: dict[str, tuple[tuple[str, ...], int, str]]) -> list[Any]:
    return [pytest.param(*values, id=name) for name, values in case.items()]


@pytest.mark.parametrize(("words", "code", "told"), json_too(FILES))
def test_misuse(words: tuple[str, ...], code: int, told: str, misused: Misused) -> None:
    told = told.format_map(misused.names)
    require_one_line(pol(*misused.line(words)), code, told)


@pytest.mark.parametrize(("words", "code", "told"), json_too(CHAIN))
def test_misuse_on_a_chain(words: tuple[str, ...], code: int, told: str, market: Misused) -> None:
    # --rpc may be repeated; what a case adds is meant alone.
    line = market.line(words)
    while line.count("--rpc") > 1:
        del line[line.index("--rpc") : line.index("--rpc") + 2]
    require_one_line(pol(*line), code, told.format_map(market.names))


@pytest.mark.parametrize("sort", ["a wrong path", "a half-written record", "zero", "a misspelled verb"])
def test_with_json_the_line_is_an_object(sort: str, misused: Misused) -> None:
    words, code, told = FILES[sort]
    require_json(pol(*misused.line(words), "--json"), code, told)


def process(*words: str | Path, **kwargs: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pol.cli.main", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


def test_a_limit_on_the_size_of_files(misused: Misused) -> None:
    """As a full disk: the system refuses the bytes of a file that is open already."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    with process("commit", str(misused.names["model"]), "--out", misused.folder / "big", preexec_fn=limit) as running:
        _, said = running.communicate()
    require_one_line(Said(running.returncode, said), 3, "write elsewhere")


@pytest.fixture
def nobody(misused: Misused) -> Iterator[Path]:
    """A folder that this process may not enter: root works as another user meanwhile."""
    shut = misused.folder / "shut"
    shut.mkdir(exist_ok=True)
    (shut / "run").mkdir(exist_ok=True)
    for verb in ("commit", "check", "log", "serve", "verify", "replay"):  # what a verb imports, that user may not read
        pol(verb, misused.names["none"], *(("--exact",) if verb == "verify" else ()))
    pol("config", "path")
    shut.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(OTHERS)
    try:
        yield shut
    finally:
        if is_root:
            os.seteuid(0)
        shut.chmod(0o700)


@pytest.mark.parametrize(
    "words",
    [
        ("commit", "{}/run"),
        ("check", "{}/run"),
        ("log", "{}/run"),
        ("serve", "{}/run"),
        ("verify", "{}/run", "--exact"),
        ("replay", "{}/run"),
    ],
    ids=lambda words: str(words[0]),
)
def test_no_permission(words: tuple[str, ...], nobody: Path) -> None:
    said = pol(*(word.format(nobody) for word in words))
    require_one_line(said, 3, "Permission denied: ask its owner for access")


def test_a_key_that_may_not_be_read(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POL_CONFIG", str(nobody / "pol.toml"))
    require_one_line(pol("config"), 3, "Permission denied: ask its owner for access")


def test_an_unsupported_operation(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n\n\nclass Model(torch.nn.Linear):\n    def forward(self, x):\n"
        "        return torch.linalg.svdvals(super().forward(x)).sum() + x\n\n\ndef make():\n"
        "    model = Model(2, 2)\n    data = (torch.ones(4, 2), torch.ones(4, 2))\n"
        "    order = torch.zeros(2, 2, dtype=torch.int64)\n"
        "    return model, torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.1), data, order\n"
    )
    said = pol("capture", "--check", "train.py:make")
    assert said == Said(1, match="1 refused")
    assert "Traceback" not in said.out
    assert "train.py:6" in said.out
    assert "svd" in said.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt(number: signal.Signals, misused: Misused) -> None:
    with process("serve", str(misused.names["run"]), "--port", "0") as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("serving")
        running.send_signal(number)
        _, said = running.communicate()
    require_one_line(Said(running.returncode, said), 130, "interrupted; nothing was left half-written")


@pytest.mark.long
def test_the_explorer_needs_no_display_and_no_browser(market: Misused) -> None:
    bare = {name: value for name, value in os.environ.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}}
    with process("explore", *market.line(MARKET), "--port", "0", env=bare) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("http://127.0.0.1:")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate()
    require_one_line(Said(running.returncode, said), 130, "interrupted")


@pytest.mark.long
def test_a_lock_of_another_process_and_one_of_a_dead_process(market: Misused, tmp_path: Path) -> None:
    run = ("run", "verifier", *market.line((*MARKET, *KEY)), "--data", tmp_path / "party", "--poll", "0.1")
    with process(*run) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with process(*run, "--turns", "1") as second:
            _, said = second.communicate()
        require_one_line(Said(second.returncode, said), 3, "wait for it, or end it")
        first.kill()
        first.communicate()
    with process(*run, "--turns", "1") as third:
        _, said = third.communicate()
    assert (third.returncode, said) == (0, "")


def test_a_database_that_is_none(market: Misused, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "party").mkdir()
    (tmp_path / "party" / "party.sqlite").write_bytes(b"no database " * 1000)
    said = pol("run", "verifier", *market.line((*MARKET, *KEY)), "--data", tmp_path / "party", "--turns", "1")
    assert (said.code, "put aside as party.sqlite.damaged" in caplog.text) == (0, True), said.out


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "pol.toml").write_bytes(b"network = \xff")
    require_one_line(pol("monitor"), 2, "isn't text in UTF-8: save it as UTF-8")
    (tmp_path / "pol.toml").write_text('network = "moon"\n')
    require_one_line(pol("monitor"), 2, "no file has a network moon (there is none): `pol config set rpc URL")
