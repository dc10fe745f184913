"""``pol config``: which node, contracts, store and key the other verbs take, and where each of them is said."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from pol.chain.node.network_settings import (
    FILE,
    PATHS,
    SETTINGS,
    NetworkSettings,
    project_file,
    read_document,
    read_settings,
    require_value,
    user_file,
)
from pol.cli.examples import example
from pol.cli.file_output import json_option, write_file
from pol.cli.verb_group import VerbGroup
from pol.errors import ProtocolError

_network = click.option("--network", envvar="POL_NETWORK", show_envvar=True, metavar="NAME", help="Of this network.")


@click.group(
    cls=VerbGroup,
    invoke_without_command=True,
    epilog=example("pol config", "pol config set rpc http://127.0.0.1:8545 --network local"),
)
@_network
@json_option
@click.pass_context
def config(ctx: click.Context, network: str | None, as_json: bool) -> None:
    """Show the node, deployment, store and key that verbs take, and where each of them is said.

    An option of a command line goes before the environment (POL_RPC, ...), that before pol.toml in this folder or the
    nearest one above it, and that before the user's own file.
    """
    if ctx.invoked_subcommand is not None:
        return
    try:
        shown = _shown(read_settings(network))
    except ProtocolError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print(json.dumps(shown))
        return
    name = shown["network"]["value"] if shown["network"] else "none is chosen"
    print(f"{'network':<11} {name}{_source(shown['network'])}")
    for setting in SETTINGS:
        entry = shown["settings"][setting]
        value = "not set" if entry is None else entry["value"]
        print(f"{setting:<11} {' '.join(value) if isinstance(value, tuple) else value}{_source(entry)}")


def _shown(found: NetworkSettings) -> dict[str, Any]:
    """By name: value and source; None if nobody says it."""
    network = found.network
    shown: dict[str, Any] = {"network": None, "settings": {}}
    if network is not None:
        source = str(network.file) if network.file.name else "--network or POL_NETWORK"
        shown["network"] = {"value": network.value, "source": source}
    for name in SETTINGS:
        variable, setting = f"POL_{name.upper()}", found.values.get(name)
        value = os.environ.get(variable)
        if value:
            require_value(name, value, variable)
            shown["settings"][name] = {"value": tuple(value.split()) if name == "rpc" else value, "source": variable}
        else:
            shown["settings"][name] = setting and {"value": setting.value, "source": str(setting.file)}
    return shown


def _source(entry: dict[str, Any] | None) -> str:
    return "" if entry is None else f"  ({entry['source']})"


@config.command("set", epilog=example("pol config set rpc http://127.0.0.1:8545 --network local"))
@click.argument("setting", type=click.Choice(["network", *SETTINGS]))
@click.argument("values", nargs=-1, required=True, metavar="VALUE")
@_network
@click.option("--user", "is_users", is_flag=True, help="Write the user's own file, for every folder.")
@json_option
def set_value(setting: str, values: tuple[str, ...], network: str | None, is_users: bool, as_json: bool) -> None:
    """Write a value into pol.toml: that in effect here, a new one, or with --user the user's own.

    `set network NAME` chooses the network that verbs take without --network; the first one that gets a value is chosen
    at once. Only rpc takes several values. Paths are written relative to the file where it lies above them.
    """
    if len(values) > 1 and setting != "rpc":
        raise click.UsageError(f"{setting} takes one value: only rpc takes several")
    file = user_file() if is_users else _project_file()
    value: Any = list(values) if len(values) > 1 else values[0]
    try:
        document = read_document(file) if file.exists() else {}
        if setting == "network":
            changes: dict[tuple[str, ...], Any] = {("network",): value}
        else:
            chosen = network or document.get("network")
            if chosen is None:
                raise click.UsageError(f"name the network that this is of: pol config set {setting} ... --network NAME")
            require_value(setting, value, "the command line")
            changes = {("networks", chosen, setting): _relative(setting, value, file)}
            if "network" not in document:
                changes[("network",)] = chosen
        _change(file, changes)
    except ProtocolError as error:
        raise click.UsageError(str(error)) from error
    written = {"file": str(file), "setting": setting, "value": value}
    print(json.dumps(written) if as_json else f"{file}: {setting} is set")


@config.command("path", epilog=example("pol config path"))
@json_option
def show_paths(as_json: bool) -> None:
    """Print the files that settings come from, the first one first."""
    try:
        files = {"project": _project_file(), "user": user_file()}
    except ProtocolError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print(json.dumps({name: {"file": str(file), "exists": file.is_file()} for name, file in files.items()}))
        return
    for file in files.values():
        print(file if file.is_file() else f"{file}  (isn't there)")


def _project_file() -> Path:
    return project_file() or Path.cwd() / FILE


def _relative(setting: str, value: Any, file: Path) -> Any:
    """A path of this folder as one of the file's folder, so that both may move together."""
    if setting not in PATHS and (setting != "store" or "://" in value):
        return value
    path = Path(value).expanduser().absolute()
    return str(path.relative_to(file.parent) if path.is_relative_to(file.parent) else path)


def _change(file: Path, changes: dict[tuple[str, ...], Any]) -> None:
    """Write values into a file, whose comments stay."""
    import tomlkit

    document = tomlkit.parse(file.read_text()) if file.exists() else tomlkit.document()
    for (*tables, name), value in sorted(changes.items(), key=lambda change: len(change[0])):
        table: Any = document
        for step in tables:
            table = table.setdefault(step, tomlkit.table(is_super_table=step == "networks"))
        table[name] = value
    draft = file.with_suffix(".draft")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(draft, tomlkit.dumps(document).encode())
    draft.replace(file)
