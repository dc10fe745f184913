"""Settings come from the command line, the environment, pol.toml and the user's file, in this order."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from cli_runner import Said, answer, pol
from pol.cli.commands import commands
from pol.cli.market.network_options import NetworkOption

KEY = "0x" + "ab" * 32
VERBS = ("explain", "explore", "monitor", "object", "price", "report", "run", "stake")
"""Verbs that take a network."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and another one for the user's file."""
    for name in [name for name in os.environ if name.startswith("POL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "work" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home" / "pol" / "pol.toml"


shown = partial(answer, "config")


def value(setting: str, *options: str) -> Any:
    found = shown(*options)["settings"][setting]
    return found and found["value"]


def taken(verb: str, *line: str) -> dict[str, Any]:
    """The options of a command as it would get them."""
    group = click.Context(commands, info_name="pol", auto_envvar_prefix="POL")
    command = commands.get_command(group, verb)
    assert command is not None
    return command.make_context(verb, list(line), parent=group).params


def test_what_is_set_is_shown_with_its_file_and_taken_by_verbs() -> None:
    assert pol("config", "set", "rpc", "http://127.0.0.1:1", "--network", "local") == Said(0)
    for name, entry in {"deployment": "deployment.json", "store": "store", "key": "keys/me.json"}.items():
        assert pol("config", "set", name, entry) == Said(0, match=f"pol.toml: {name} is set")
    here = Path.cwd()
    file = here / "pol.toml"
    assert file.read_text() == (
        'network = "local"\n\n[networks.local]\nrpc = "http://127.0.0.1:1"\ndeployment = "deployment.json"\n'
        'store = "store"\nkey = "keys/me.json"\n'
    )
    found = shown()
    assert found["network"] == {"value": "local", "source": str(file)}
    assert found["settings"]["rpc"] == {"value": ["http://127.0.0.1:1"], "source": str(file)}
    assert found["settings"]["passphrase"] is None
    options = taken("run", "verifier")
    assert options["rpc"] == ("http://127.0.0.1:1",)
    assert (options["deployment"], options["store"]) == (here / "deployment.json", str(here / "store"))
    assert options["keystore"] == here / "keys" / "me.json"
    assert pol("config") == Said(0, match=f"deployment  {here}/deployment.json  ({file})")


def test_paths_are_relative_to_their_file_and_the_nearest_file_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    pol("config", "set", "deployment", "deployment.json", "--network", "local")
    above = Path.cwd()
    monkeypatch.chdir("deep")
    assert value("deployment") == str(above / "deployment.json")
    assert pol("config", "set", "store", "s3://bucket") == Said(0, match=str(above / "pol.toml"))
    assert value("store") == "s3://bucket"
    Path("pol.toml").write_text('network = "other"\n[networks.other]\nstore = "../store"\n')
    assert Path(value("store")).resolve() == above / "store"
    assert value("deployment") is None


def test_precedence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ("--deployment", "d", "--store", "s")
    home.parent.mkdir(parents=True)
    home.write_text('network = "b"\n[networks.b]\nrpc = "user"\nstore = "s3://user"\n[networks.a]\nrpc = "user a"\n')
    assert (value("rpc"), value("store")) == (["user"], "s3://user")
    assert taken("monitor", *needed[:2])["rpc"] == ("user",)
    Path("pol.toml").write_text('network = "b"\n[networks.b]\nrpc = ["file", "second"]\n')
    assert (value("rpc"), value("store")) == (["file", "second"], "s3://user")
    assert value("rpc", "--network", "a") == ["user a"]
    assert taken("price", "x", *needed, "--network", "a")["rpc"] == ("user a",)
    monkeypatch.setenv("POL_NETWORK", "a")
    assert taken("price", "x", *needed)["rpc"] == ("user a",)
    monkeypatch.delenv("POL_NETWORK")
    monkeypatch.setenv("POL_RPC", "first second")
    assert shown()["settings"]["rpc"] == {"value": ["first", "second"], "source": "POL_RPC"}
    assert taken("price", "x", *needed)["rpc"] == ("first", "second")
    assert taken("price", "x", *needed, "--rpc", "given")["rpc"] == ("given",)


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.toml"
    other.write_text('network = "x"\n[networks.x]\nrpc = "other"\n')
    Path("pol.toml").write_text('network = "x"\n[networks.x]\nrpc = "here"\n')
    monkeypatch.setenv("POL_CONFIG", str(other))
    assert value("rpc") == ["other"]
    assert pol("config", "path") == Said(0, match=str(other))


def test_a_change_keeps_comments_and_other_networks() -> None:
    file = Path("pol.toml")
    file.write_text('# mine\nnetwork = "a"\n\n[networks.a]\nrpc = "one" # the old one\n\n[networks.b]\nrpc = "b"\n')
    assert pol("config", "set", "store", "memory://", "--network", "b") == Said(0)
    assert pol("config", "set", "rpc", "two", "three") == Said(0)
    assert pol("config", "set", "network", "b") == Said(0)
    assert "# mine\n" in file.read_text()
    assert (value("rpc"), value("store")) == (["b"], "memory://")
    assert value("rpc", "--network", "a") == ["two", "three"]


def test_the_users_file(home: Path) -> None:
    assert pol("config", "set", "key", "me.json", "--network", "sepolia", "--user") == Said(0, match=str(home))
    assert value("key") == str(Path.cwd() / "me.json"), "its folder isn't above the key"
    assert not Path("pol.toml").exists()
    said = json.loads(pol("config", "path", "--json").out)
    assert said == {
        "project": {"file": str(Path.cwd() / "pol.toml"), "exists": False},
        "user": {"file": str(home), "exists": True},
    }


@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        KEY[2:],
        "-----BEGIN PRIVATE KEY-----",
        '{"version": 3}',
        "test test test test test test test test test test test junk",
    ],
    ids=["0x", "digits", "PEM", "keystore", "phrase"],
)
@pytest.mark.parametrize("place", ["set", "file", "environment", "option"])
def test_a_key_itself_is_refused_and_not_shown(secret: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ("--deployment", "d", "--store", "s", "--rpc", "http://127.0.0.1:1")
    line: tuple[str, ...] = ("stake", "show", *needed)
    if place == "set":
        line = ("config", "set", "key", "--network", "a", "--", secret)
    elif place == "file":
        Path("pol.toml").write_text(f'network = "a"\n[networks.a]\nkey = {json.dumps(secret)}\n')
    elif place == "environment":
        monkeypatch.setenv("POL_KEY", secret)
        assert pol("config").code == 2
    else:
        line += ("--key", secret)
    said = pol(*line)
    assert (said.code, said.out.count("\n")) == (2, 1), said.out
    assert "name the file" in said.out
    assert secret not in said.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"network = \xff", "isn't text in UTF-8"),
        (b"network = ", "isn't TOML"),
        (b"x = " + b"[" * 10_000, "isn't TOML"),
        (b"x = " + b"9" * 10_000, "isn't TOML"),
        (b"netwrk = 1", "Did you mean 'network'?"),
        (b"[networks.a]\ndeploment = 'x'", "Did you mean 'deployment'?"),
        (b"[networks.a]\nrpc = 1", "a text or a list of texts"),
        (b"[networks.a]\nrpc = []", "a text or a list of texts"),
        (b"[networks.a]\nstore = ['x']", "store has to be a text"),
        (b"network = 1", 'write network = "NAME"'),
        (b"networks = 1", 'write network = "NAME"'),
        (b"networks.a = 1", "write [networks.a]"),
        (b"network = 'b'\n[networks.a]\nrpc = 'x'", "no file has a network b (there is a)"),
    ],
)
def test_a_file_that_cannot_be_meant(text: bytes, told: str) -> None:
    Path("pol.toml").write_bytes(text)
    for line in (("config",), ("monitor",), ("price", "x")):
        said = pol(*line)
        assert (said.code, said.out.count("\n")) == (2, 1), said.out
        assert told in said.out


def test_a_file_that_others_may_write_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("pol.toml")
    file.write_text('network = "a"\n[networks.a]\nrpc = "x"\n')
    file.chmod(0o666)
    assert pol("monitor") == Said(2, match="others than you may write")
    monkeypatch.setenv("POL_CONFIG", str(file))
    assert value("rpc") == ["x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_of_somebody_else_is_refused() -> None:
    file = Path("pol.toml")
    file.write_text('network = "a"\n[networks.a]\nrpc = "x"\n')
    os.chown(file, 65534, 65534)
    assert pol("monitor") == Said(2, match="others than you may write")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_link_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """It would lead to one's own key, and to contracts beside the link."""
    own = tmp_path / "own.toml"
    own.write_text('network = "a"\n[networks.a]\nrpc = "x"\n')
    Path("pol.toml").symlink_to(own)
    assert value("rpc") == ["x"]
    os.lchown("pol.toml", 65534, 65534)
    assert pol("monitor") == Said(2, match="others than you may write")


def test_what_is_missing_is_said_with_every_way_to_give_it() -> None:
    assert pol("monitor") == Said(2, match="'--deployment' (POL_DEPLOYMENT, or once for all: `pol config set")
    assert pol("config", "set", "rpc", "x") == Said(2, match="--network NAME")
    assert pol("config", "set", "store", "x", "y") == Said(2, match="only rpc takes several")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_a_market_takes_a_network(verb: str) -> None:
    command = commands.get_command(click.Context(commands), verb)
    assert command is not None
    assert "network" in {param.name for param in command.params}
    shared = {param.setting for param in command.params if isinstance(param, NetworkOption)}
    assert {"rpc", "deployment"} <= shared
    other = {"rpc", "deployment", "store", "keystore", "passphrase"} & {
        str(param.name) for param in command.params if param.param_type_name == "option"
    }
    assert other == {name.replace("key", "keystore") for name in shared}
