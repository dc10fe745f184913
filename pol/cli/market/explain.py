"""``pol explain``: the state of a task or a dispute, a process's decisions, the fields of a move, a dispute's needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from pol.chain.times import duration, utc
from pol.cli.examples import example
from pol.cli.finite_range import FiniteRange
from pol.cli.market.party_options import MarketAccess, optional_market_options
from pol.dispute.encoding.move_decoding import PackedMove, decode
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.report.disputes.move_descriptions import lines

if TYPE_CHECKING:
    from pol.chain.court.move_from_transaction import SentMove
    from pol.roles.party.evidence import Evidence
    from pol.roles.process.party_process import LoggedDecision


TASK_DIGITS, HASH_DIGITS = 8, 64
MATTERS = ["verdict", "profile", "objection", "counterclaim"]
"""Values of `Matter`, which imports web3."""


@click.command(
    epilog=example("pol explain 1a2b3c4d", "pol explain 12 --about objection", "pol explain --data FOLDER --why move")
)
@click.argument("what", required=False, default="", metavar="[TASK|DISPUTE|TRANSACTION|FILE|WORKER]")
@optional_market_options
@click.option(
    "--about",
    "matter",
    type=click.Choice(MATTERS),
    default=MATTERS[0],
    show_default=True,
    help="What the dispute of this number is about: each matter counts its own.",
)
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="The folder of a process.")
@click.option("--why", "verb", metavar="ACTION", help="With --data: the last such action, its rule, and its view.")
@click.option("--dispute", "needs", is_flag=True, help="What a dispute about the task would take this machine.")
@click.option("--interval", type=click.IntRange(1), default=1, show_default=True, help="Of a file: steps a segment.")
@click.option("--step-seconds", type=FiniteRange(0), metavar="S", help="Of a file: what a step takes here.")
@click.option("--plan", metavar="ID", help="Of a worker: its plan in rounds; else that of the log in --store.")
@click.option("--settlement", type=click.IntRange(0), metavar="N", help="Of a worker; else the newest one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(
    what: str,
    market: MarketAccess | None,
    matter: str,
    data: Path | None,
    verb: str | None,
    needs: bool,
    interval: int,
    step_seconds: float | None,
    plan: str | None,
    settlement: int | None,
    as_json: bool,
) -> None:
    """Say where a task or a dispute stands, whose turn it is and until when; or read a move of a dispute.

    A task is named by eight digits of its id or more, or with 0x before them; a dispute by its number. Without a name
    it is the newest task of the market. With --data also everything that a process decided about it, and why.

    With --data and --why "challenge the verdict", or another action: the last such action of that process, the rule by
    which it acted, and what it had read of the chain. That needs no market.

    A move is named by the hash of its transaction, or given as its calldata (0x...): all its fields are shown in the
    terms of docs/spec/dispute.md.

    A worker of a training in rounds is named by its address: why it is paid for a settlement, or isn't
    yet, and what to do next. The deployment is that of `pol deploy --rounds`.

    With --dispute: what a dispute about the task would take this machine, by level: moves, calldata, gas, memory and
    seconds; and whether a party would stake here. A step program in a FILE (program.bin) needs no market.
    """
    from pol.cli.market import explain_dispute
    from pol.roles.party.evidence import Evidence
    from pol.training.storage.store import Store

    if verb is not None:
        if data is None:
            raise click.UsageError("--why reads a process's folder: name it by --data DIR")
        _show_action(data, what.lower().removeprefix("0x"), verb, as_json)
        return
    if needs and Path(what).is_file():
        explain_dispute.show(explain_dispute.of_file(Path(what), interval, step_seconds), as_json)
        return
    if market is not None and re.fullmatch("0x[0-9a-fA-F]{40}", what):
        _show(_pay(market, what, plan, settlement), as_json)
        return
    if market is None or not market.store:
        raise click.UsageError("name the market: --deployment FILE, --rpc URL and --store URL, or `pol config set ...`")
    reader = Evidence(market.connection, market.deployment, Store(market.store_url))
    if needs:
        explain_dispute.show(explain_dispute.of_task(reader, _found(reader, what)), as_json)
        return
    packed = _packed_move(reader, what)
    if packed is not None:
        _show_move(packed, as_json)
        return
    is_number = what.isdecimal() and len(what) < TASK_DIGITS
    shown = _dispute(reader, int(what), matter) if is_number else _task(reader, _found(reader, what))
    if data is not None:
        shown["decisions"] = _decisions(data, bytes.fromhex(shown["task"]))
    _show(shown, as_json)


def _show(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    for name, value in shown.items():
        if name != "decisions":
            text = utc(value) if name == "until" else str(value)
            console.print(f"{name.replace('_', ' '):<11} {escape(text)}")
    for decision in shown.get("decisions", ()):
        console.print(
            escape(f"{utc(decision['time'])}  {decision['result']:<8}  {decision['verb']}: {decision['why']}")
        )
        if decision["detail"]:
            console.print(escape(f"{'':25}{decision['detail']}"), style="dim")


def _pay(market: MarketAccess, worker: str, plan: str | None, number: int | None) -> dict[str, Any]:
    """Why a worker of rounds is paid for a settlement, or isn't."""
    from web3 import Web3

    from pol.cli.market.party_options import plan_of
    from pol.roles.rounds.pay_state import Course, pay_state

    account, contracts = Web3.to_checksum_address(worker), market.round_contracts
    plan_id = plan_of(plan, market.store_url)
    number = max(0, Course.of(contracts, plan_id).opened - 1) if number is None else number
    state = pay_state(contracts, plan_id, number, account).to_dict()
    shown = {"worker": account, "plan": plan_id.hex(), "settlement": number, **state}
    return {name: value for name, value in shown.items() if value not in (None, ())}


def _packed_move(reader: Evidence, what: str) -> SentMove | PackedMove | None:
    """The move of a transaction, or in calldata; None if neither is named."""
    from pol.chain.court.move_from_transaction import sent_move

    digits, market = what.lower().removeprefix("0x"), reader.market
    if len(digits) < HASH_DIGITS or not re.fullmatch("[0-9a-f]*", digits):
        return None
    if len(digits) > HASH_DIGITS:
        if len(digits) % 2:
            raise ProtocolError(f"calldata has two digits a byte; {len(digits)} were given")
        return decode(bytes.fromhex(digits), bits=market.game.bits)
    named = bytes.fromhex(digits)
    if named in _tasks(reader):
        return None
    return sent_move(reader.connection, tuple(court.game for court in market.courts.values()), named)


def _show_move(found: SentMove | PackedMove, as_json: bool) -> None:
    from pol.chain.court.move_from_transaction import SentMove

    move, sent = (found.move, found) if isinstance(found, SentMove) else (found, None)
    if as_json:
        document = move.to_dict()
        if sent is not None:
            document |= {"game": sent.game, "sender": sent.sender, "block": sent.block, "reverted": sent.reverted}
        print(json.dumps(document, indent=2))
        return
    for line in lines(move):
        print(line)
    if sent is not None:
        block = "in no block yet" if sent.block is None else f"in block {sent.block}"
        print(f"sent by {sent.sender} to {sent.game}, {block}")
    if sent is not None and sent.reverted:
        print("The contract refused it: the dispute stands where it stood before.")


def _tasks(reader: Evidence) -> list[bytes]:
    """The ids of all tasks."""
    return [bytes(event["taskId"]) for event in reader.market.registry.events("TaskSubmitted")]


def _found(reader: Evidence, start: str) -> bytes:
    """The id of the only task that begins so; of the newest one if nothing is given."""
    start, tasks = start.lower().removeprefix("0x"), _tasks(reader)
    if not start:
        if not tasks:
            raise ProtocolError("this market has no task yet: submit one (`pol submit`), or name another deployment")
        return tasks[-1]
    found = [task_id for task_id in tasks if task_id.hex().startswith(start)]
    if len(found) != 1:
        raise ProtocolError(
            f"{len(found)} of {len(tasks)} tasks begin with {start}: name eight digits of a task's id or more, as `pol "
            "explore` and `pol monitor` show them, on the deployment that it is on"
        )
    return found[0]


def _task(reader: Evidence, task_id: bytes) -> dict[str, Any]:
    from pol.roles.monitor.task_story import STAGES, state_of

    state = state_of(reader, task_id)
    task, stage = state.task, STAGES.get(state.task.status)
    shown: dict[str, Any] = {"task": task_id.hex(), "status": task.status.name.lower()}
    shown |= {"submitter": task.submitter, "solver": task.solver, "holder": task.holder}
    if state.unserved:
        told = ", ".join(state.unserved)
        shown["unserved"] = f"{told} can't read the states, as it says; two such words end the training"
    shown["next"] = state.waits
    if state.until is not None:
        shown["until"] = state.until
    return shown | ({"then": stage.then} if stage is not None and stage.then else {})


def _dispute(reader: Evidence, number: int, named: str) -> dict[str, Any]:
    from pol.chain.desks.market import Matter
    from pol.roles.monitor.market_reader import about

    market, matter = reader.market, Matter(named)
    court = market.courts[matter]
    known, game = court.desk.dispute(number), court.game
    if not any(known.task_id):
        others = ", ".join(m for m in MATTERS if m != matter)
        raise ProtocolError(f"there is no dispute {number} about a {matter} here; another matter: --about {others}")
    params, winner = game.params(number), game.winner(number)
    shown: dict[str, Any] = {"dispute": number, "task": known.task_id.hex()}
    shown |= {"asserter": params.asserter, "challenger": params.challenger, "bond": known.bond}
    shown["about"] = about(market, number, matter)
    if winner is not Side.NONE:
        return shown | {"winner": winner.name.lower(), "settled": known.is_settled}
    program = reader.program_in(known.task_id, number, matter)
    standing, deadline = game.standing(number, program), game.deadline(number)
    left = deadline - reader.connection.now()
    shown |= {"level": standing.position.level.name.lower(), "on_turn": standing.position.turn.name.lower()}
    shown["until"] = deadline - 1
    if left > 0:
        shown["next"] = f"the {shown['on_turn']} moves, or loses in {duration(left)}"
    else:
        shown["next"] = f"anybody may claim the timeout of the {shown['on_turn']}"
    return shown


def _show_action(data: Path, start: str, verb: str, as_json: bool) -> None:
    """The last action of this verb in a process's folder, about a task whose id begins so."""
    from pol.roles.party.action_rules import RULES

    decided = _decided(data)
    acted = [each for each in decided if each.task_id.hex().startswith(start) and each.verb != "wait"]
    found = [each for each in acted if each.verb == verb]
    if not found:
        verbs = ", ".join(sorted({each.verb for each in acted})) or "nothing"
        raise ProtocolError(f"the process in {data} has decided on no action {verb!r} there, but on: {verbs}")
    last = found[-1]
    reason, spec = RULES[verb]
    shown: dict[str, Any] = {"action": verb, "task": last.task_id.hex(), "time": last.at, "result": last.result.value}
    shown |= {"detail": last.detail} if last.detail else {}
    shown |= {"why": last.why, "rule": reason, "spec": f"docs/spec/{spec.replace(': ', '.md, ')}"}
    if as_json:
        print(json.dumps({**shown, "view": last.view}, indent=2))
        return
    _show(shown | {"time": utc(last.at)}, as_json=False)
    print("what it had read of the chain:")
    for line in last.view:
        print(f"  {line}")


def _decided(data: Path, task_id: bytes | None = None) -> list[LoggedDecision]:
    from pol.roles.process.decision_log import DecisionLog
    from pol.training.storage.party_database import FILE, PartyDatabase

    if not (data / FILE).exists():
        raise ProtocolError(f"{data} holds no decision log: it is the folder that `pol run` names when it starts")
    database = PartyDatabase(data)
    try:
        return DecisionLog(database).decisions(task_id)
    finally:
        database.close()


def _decisions(data: Path, task_id: bytes) -> list[dict[str, Any]]:
    return [
        {"time": d.at, "verb": d.verb, "why": d.why, "result": d.result, "detail": d.detail, "until": d.until}
        for d in _decided(data, task_id)
    ]
