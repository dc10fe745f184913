"""The next action of a worker or a keeper of rounds: answers, moves, evidence, lines, pay, and its stake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from typing import Any

from eth_typing import ChecksumAddress
from web3 import Web3

from pol.chain.contract.structs import decoded
from pol.chain.rounds.round_demands import RoundDemand, TimedDemands
from pol.chain.rounds.signed_structs import logged_entry, member_proof, sign_head
from pol.chain.rounds.worker_bonds import Standing
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.position import Side
from pol.errors import OperationalError, PolError, ProtocolError, UnsupportedError
from pol.incentives.work_shares import CountedClaim, pay_of
from pol.roles.party.decisions import Action, Decision, Mode, Wait, lacks
from pol.roles.party.dispute_session import DisputeSession
from pol.roles.rounds.own_claims import Omission, OwnClaims
from pol.roles.rounds.pay_state import Course, pay_state
from pol.roles.rounds.round_party import RoundParty
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.auditing.round_audit import Finding
from pol.rounds.log.log_entries import ClaimEntry, RosterEntry
from pol.rounds.log.rounds_log import LogHead
from pol.rounds.round_claim import INITIAL, RoundClaim

GRACE = 600
"""Seconds for which a worker leaves it to the keeper to open a settlement, and to call what anybody may."""
_STAKED = (Standing.JOINED, Standing.LEAVING)
_FAR = 1 << 64


def next_of_rounds(role: RoundParty, plan_id: bytes) -> Decision:
    """The next action of the party, or why it waits; what has failed comes behind what hasn't."""
    role.refresh()
    course = Course.of(role.contracts, plan_id)
    own = cache(partial(OwnClaims.of, role, course))  # what fails here hides no move and no answer
    of_course = partial(_settlements, course=course, own=own), partial(_stake, course=course, own=own)
    sources = (_moves, _answers, partial(_demands, own=own), _evidence, *of_course)
    found = [decision for source in sources for decision in _noted(role, source)]
    actions = [decision for decision in found if isinstance(decision, Action)]
    if actions:
        chosen = min(actions, key=lambda each: (role.tried[each.why], each.mode, each.due or _FAR))
        return replace(chosen, act=partial(_counted, role, chosen))
    waits = [decision for decision in found if isinstance(decision, Wait)]
    if role.problems:
        until = min((wait.until for wait in waits if wait.until is not None), default=None)
        return Wait(plan_id, f"not all can be read or answered: {role.problems[0]}", until)
    return min(waits, key=lambda wait: (wait.final, not wait.mend, wait.until or _FAR))


def _counted(role: RoundParty, action: Action) -> object:
    """Act, and count failures in a row."""
    role.tried[action.why] += 1
    done = action.act()
    del role.tried[action.why]
    return done


def _noted(role: RoundParty, source: Callable[[RoundParty], Iterator[Decision]]) -> list[Decision]:
    """What a source of decisions gives; one that fails hides no other."""
    found = list[Decision]()
    try:
        found.extend(source(role))
    except PolError as error:
        role.problems.append(str(error))
    return found


@contextmanager
def _noting(role: RoundParty, about: str) -> Iterator[None]:
    """A failure about one thing is told, and hides no other."""
    try:
        yield
    except PolError as error:
        role.problems.append(f"{about}: {error}")


def _moves(role: RoundParty) -> Iterator[Decision]:
    """Moves in disputes about claims, and the end of those that are over."""
    desk, game, own, now = role.contracts.disputes, role.contracts.game, role.wallet.address, role.connection.now()
    for event in role.open_disputes():
        number = int(event["number"])
        with _noting(role, f"dispute {number}"):
            bond, winner = role.contracts.bonds.bond(role.plan_id, event["worker"]), game.winner(number)
            is_lost = bond.standing is Standing.SLASHED
            if winner is not Side.NONE or is_lost:
                # Whoever has lost it leaves the end to others; where the stake is lost, the bond returns.
                is_worker = event["worker"] == own
                gains = not is_worker if is_lost else winner is (Side.ASSERTER if is_worker else Side.CHALLENGER)
                if gains:
                    act: Callable[[], object] = partial(desk.settle, role.wallet, number)
                    why = f"dispute {number} has ended"
                    yield Action(role.plan_id, "settle a dispute", why, Mode.DEFEND, act)
                continue
            entry = role.kept.claim(bytes(event["claim"]))
            program = load_phase(role.kept.own, role.kept.plan.phase(entry.claim.phase)).program
            deadline, is_own = game.deadline(number), game.standing(number, program).on_turn == own
            if is_own and now < deadline:
                why, act = f"it is this party's turn in dispute {number}", partial(_move, role, number)
                yield Action(role.plan_id, "move", why, Mode.DEFEND, act, deadline - 1, bond.stake)
            elif not is_own and now >= deadline:
                why = f"the other side has made no move in dispute {number}"
                act = partial(game.timeout, role.wallet, number)
                yield Action(role.plan_id, "claim a timeout", why, Mode.DEFEND, act)
            else:
                yield Wait(role.plan_id, f"the other side moves in dispute {number}", deadline)


def _move(role: RoundParty, number: int) -> object:
    event = next(each for each in role.open_disputes() if int(each["number"]) == number)
    entry = role.kept.claim(bytes(event["claim"]))
    trace = role.session_trace(entry)
    return DisputeSession(role.contracts.game, role.wallet, trace.program, number, ReplayPlayer(trace)).advance()


def _answers(role: RoundParty) -> Iterator[Decision]:
    """Answers to demands, and the end of this party's own that nobody has answered."""
    now, bond = role.connection.now(), role.bond()
    for desk, demand in role.demands():
        if now <= demand.deadline and bond.standing in _STAKED:  # a stake that is lost isn't saved by answers
            if (since := first_answer(role, demand)) > now:
                why = f"demand {demand.key.hex()[:8]} asks for the length of the log"
                yield Wait(role.plan_id, f"{why}: this party answers when what it has begun is logged", since)
                continue
            why = f"demand {demand.key.hex()[:8]} asks for what this party has signed"
            act = partial(answer, role, desk, demand)
            yield Action(role.plan_id, "answer a demand", why, Mode.DEFEND, act, demand.deadline, bond.stake)
    for desk in (role.contracts.demands, role.contracts.shares):
        for demand in desk.demands(role.plan_id):
            if demand.demander == role.wallet.address and now > demand.deadline:
                why = f"demand {demand.key.hex()[:8]} of this party wasn't answered"
                yield Action(role.plan_id, "end a demand", why, Mode.DEFEND, partial(desk.expire, role.wallet, demand))


def first_answer(role: RoundParty, demand: RoundDemand) -> int:
    """From when a demand is answered: the length of the log in the second half of its window, all others at once.

    A roster that was begun while its member had a stake, and is logged behind that length, would be a lie.
    """
    asked = role.contracts.demands.events("LengthDemanded", id=role.plan_id, content=demand.content)
    return demand.deadline - role.terms.answer_window // 2 if asked else 0


def answer(role: RoundParty, desk: TimedDemands, demand: RoundDemand) -> object:
    """Answer a demand from this party's own copies."""
    about = {"id": role.plan_id, "content": demand.content}
    if desk is role.contracts.shares:
        return _answer_counted(role, demand, desk.events("CountedDemanded", **about)[-1])
    demands = role.contracts.demands
    if asked := demands.events("SourceDemanded", **about):
        return _answer_source(role, demand, _claim(asked[-1]["signed"]), int(asked[-1]["slot"]))
    if asked := demands.events("RosterDemanded", **about):
        entry = role.kept.claim(_claim(asked[-1]["signed"]))
        return demands.answer_roster(role.wallet, demand, entry, *role.kept.roster(entry.claim.roster))
    if asked := demands.events("EntryDemanded", **about):
        return demands.answer_entry(role.wallet, demand, *_logged(role, _claim(asked[-1]["signed"])))
    if asked := demands.events("RosterEntryDemanded", **about):
        document = bytes(asked[-1]["document"])
        logged = _logged_roster(role, document)
        return demands.answer_roster_entry(role.wallet, demand, int(asked[-1]["round"]), document, logged)
    if asked := demands.events("LengthDemanded", **about):
        return demands.answer_length(role.wallet, demand, asked[-1]["worker"], _own_head(role))
    asked = demands.events("PathDemanded", **about)
    if not asked:
        raise OperationalError(
            f"{role.connection.name} has no event of demand {demand.key.hex()[:8]}: ask another node"
        )
    older, newer = (_head(asked[-1][name]) for name in ("older", "newer"))
    _, log = role.kept.whole
    if newer.size > len(log):
        raise OperationalError(
            f"the kept log has {len(log)} entries, and a head over {newer.size} was signed: put back the newest state "
            f"of {role.store.url}"
        )
    path = log.consistency(older.size, newer.size) if older.size else []  # every log extends the empty one
    return demands.answer_path(role.wallet, demand, older, newer, path)


def _own_head(role: RoundParty, least: int = 0) -> LogHead:
    """A head over ``least`` entries, or all: if none is published yet, the keeper's word over what it has begun."""
    _, log = role.kept.whole
    head = role.kept.head
    if head is None or head.size < (least or len(log)):
        root = log.root() if len(log) else sha256().digest()  # RFC 9162, 2.1.1
        head = LogHead(role.plan_id, len(log), root, b"", (), ())
        head = replace(head, signature=sign_head(role.wallet, head))
    return head


def _answer_source(role: RoundParty, demand: RoundDemand, claim: bytes, slot: int) -> object:
    rounds, desk = role.kept.rounds, role.contracts.demands
    entry = role.kept.claim(claim)
    sources = rounds.sources(entry)
    about = (role.wallet, demand, entry, role.commitment, sources, slot)
    if sources[slot].claim == INITIAL:
        return desk.answer_source(*about)
    named = role.kept.claim(sources[slot].claim)
    end = [each.root for each in rounds.end(named)]
    author = Web3.to_checksum_address(named.worker)
    if role.contracts.bonds.bond(role.plan_id, author).standing in _STAKED:
        return desk.answer_source(*about, named, end)
    member = member_proof(*role.kept.roster(named.claim.roster), named.worker)
    return desk.answer_source(*about, named, end, member)


def _answer_counted(role: RoundParty, demand: RoundDemand, asked: Mapping[str, Any]) -> object:
    number, index = int(asked["settlement"]), int(asked["index"])
    shares = role.contracts.shares
    about = {"id": role.plan_id, "settlement": number, "worker": role.wallet.address}
    posted = bytes(shares.events("LinePosted", **about)[-1]["claims"])
    line = [_counted_claim(posted[at : at + 48]) for at in range(0, len(posted), 48)]
    entry = role.kept.claim(line[index].claim)
    roster = role.kept.roster(entry.claim.roster)
    shown = role.contracts.demands.shown_entries(role.plan_id).get(entry.claim.digest)
    logged = shown or _logged(role, entry.claim.digest)[1]
    return shares.answer_counted(role.wallet, demand, number, line, index, entry.claim, role.commitment, roster, logged)


def _counted_claim(data: bytes) -> CountedClaim:
    place = [int.from_bytes(data[at:to], "big") for at, to in ((0, 8), (8, 12), (12, 16))]
    return CountedClaim(place[0], place[1], place[2], data[16:], 0)


def _logged(role: RoundParty, named: bytes) -> tuple[ClaimEntry, tuple[object, ...]]:
    """A claim where the kept log has it, or where the keeper's journal says that it will."""
    kept, (entries, _) = role.kept, role.kept.whole
    begun = (each for each in entries[len(kept.log) :] if isinstance(each, ClaimEntry) and each.claim.digest == named)
    entry = kept.logged.claims.get(named) or next(begun, None)
    if entry is None:
        raise _not_logged("claim", named)
    return entry, _place(role, entry)


def _logged_roster(role: RoundParty, document: bytes) -> tuple[object, ...]:
    entries, _ = role.kept.whole
    found = (each for each in entries if isinstance(each, RosterEntry) and each.document == document.hex())
    entry = next(found, None)
    if entry is None:
        raise _not_logged("roster", document)
    return _place(role, entry)


def _not_logged(kind: str, named: bytes) -> OperationalError:
    return OperationalError(
        f"the log that this party has kept is without {kind} {named.hex()[:16]}: the training's coordinator enters it "
        "when it is handed in again"
    )


def _place(role: RoundParty, entry: ClaimEntry | RosterEntry) -> tuple[object, ...]:
    entries, log = role.kept.whole
    index = entries.index(entry)
    head = _own_head(role, index + 1)
    return logged_entry(entry, index, head, log.inclusion(index, head.size))


def _claim(signed: Mapping[str, Any]) -> bytes:
    claim = decoded(RoundClaim, signed["claim"])
    return replace(claim, worker=claim.worker.lower()).digest


def _head(signed: Mapping[str, Any]) -> LogHead:
    plan, size, root = signed["head"].values()
    return LogHead(plan, size, root, signed["signature"], (), ())


def _evidence(role: RoundParty) -> Iterator[Decision]:
    """Lies of others that a contract decides by roots and signatures."""
    kept, evidence, about = role.kept, role.contracts.evidence, (role.wallet, role.plan_id)
    if kept.head is not None and _can_lose(role, kept.plan.coordinator):
        yield from _shown_heads(role, kept.head)
    if kept.other is not None and kept.head is not None and _can_lose(role, kept.plan.coordinator):
        why = f"the keeper has signed two heads of its log, over {kept.head.size} and {kept.other.size} entries"
        act: Callable[[], object] = partial(_show_fork, role, kept.head, kept.other)
        yield Action(role.plan_id, "show a forked log", why, Mode.RESOLVE, act)
    _, lies = role.findings()
    for finding in lies:
        if finding not in role.refused and _can_lose(role, finding.worker):
            yield Action(role.plan_id, "show a lie", str(finding), Mode.RESOLVE, partial(_accuse, role, finding))
    if (found := _unstaked(role)) is not None:
        roster, signature = kept.roster(found[1])
        why = f"the roster of round {roster.round} has {found[0]}, which has never put up a stake"
        if role.keeps:
            role.problems.append(f"{why}: have it join before anybody shows that, which costs this party's stake")
        elif _can_lose(role, kept.plan.coordinator):
            act = partial(evidence.show_unstaked_member, *about, roster, signature, found[0])
            yield Action(role.plan_id, "show an unstaked member", why, Mode.RESOLVE, act)
    staked = not role.keeps and role.bond().standing in _STAKED
    if kept.head is not None and staked and _can_lose(role, kept.plan.coordinator):
        for is_shown, why, call in role.accuser.member_calls(kept.logged, kept.head):
            verb = "show an unstaked member" if is_shown else "ask for the length of the log"
            yield Action(role.plan_id, verb, why, Mode.RESOLVE, call)


def _shown_heads(role: RoundParty, head: LogHead) -> Iterator[Decision]:
    """Heads that the keeper has shown in answers, and that its log doesn't extend."""
    demands, log = role.contracts.demands, role.kept.log
    asked = [_head(event["older"]) for event in demands.events("PathDemanded", id=role.plan_id)]
    shown = [event["logged"]["head"] for event in demands.events("EntryShown", id=role.plan_id)]
    shown += [event["head"] for event in demands.events("LengthShown", id=role.plan_id)]
    for other in map(_head, shown):
        if not 0 < other.size <= head.size or other.root == log.root(other.size) or other in asked:
            continue
        why = f"the keeper has shown a head over {other.size} entries, and its log over {head.size} has others"
        if other.size == head.size:
            yield Action(role.plan_id, "show a forked log", why, Mode.RESOLVE, partial(_show_fork, role, head, other))
        else:
            yield Action(role.plan_id, "ask for a path", why, Mode.PROPOSE, partial(_ask_for_path, role, other, head))


def _ask_for_path(role: RoundParty, older: LogHead, newer: LogHead) -> object:
    demands = role.contracts.demands
    _bring(role, 2 * demands.bond(role.plan_id))
    return demands.demand_path(role.wallet, role.plan_id, older, newer)


def _can_lose(role: RoundParty, worker: str) -> bool:
    """Whether a worker has a stake that evidence takes."""
    account = Web3.to_checksum_address(worker)
    if account == role.wallet.address:
        return False
    bond = role.contracts.bonds.bond(role.plan_id, account)
    return bond.standing is Standing.JOINED or (
        bond.standing is Standing.LEAVING and role.connection.now() <= bond.until
    )


def _accuse(role: RoundParty, finding: Finding) -> object:
    rounds, _ = role.findings()
    try:
        return role.accuser.accuse(rounds, finding)
    except UnsupportedError as error:
        role.refused[finding] = str(error)
        raise ProtocolError(str(error)) from error


def _show_fork(role: RoundParty, head: LogHead, other: LogHead) -> object:
    kept, evidence = role.kept, role.contracts.evidence
    if head.size == other.size:
        return evidence.show_forked_log(role.wallet, role.plan_id, head, other)
    logs = kept.log, kept.other_log()
    index = next(at for at, (one, two) in enumerate(zip(*(log.entries for log in logs), strict=False)) if one != two)
    shown = [(log.entries[index], log.inclusion(index)) for log in logs]
    return evidence.show_forked_log(role.wallet, role.plan_id, head, other, index, shown)


def _unstaked(role: RoundParty) -> tuple[str, bytes] | None:
    """A member of a signed roster that has never joined on the chain, and the roster's document."""
    joined = {event["worker"].lower() for event in role.contracts.bonds.events("Joined", id=role.plan_id)}
    return next((found for found in role.kept.members.items() if found[0] not in joined), None)


def _demands(role: RoundParty, own: Callable[[], OwnClaims]) -> Iterator[Decision]:
    """Demands of claims for which the keeper has signed, and which its log is without."""
    for each in own().due:
        claim = each.entry.claim
        where = f"round {claim.round}, {role.kept.plan.phase_name(claim.phase)}, part {claim.part}"
        why = f"the log is without its claim of {where}, for which the keeper has signed: it is paid up to {each.pay}"
        act = partial(_demand, role, each)
        yield Action(role.plan_id, "demand an entry", why, Mode.PROPOSE, act, own().last, each.pay)


def _demand(role: RoundParty, each: Omission) -> object:
    demands = role.contracts.demands
    _bring(role, 2 * demands.bond(role.plan_id))
    return demands.demand_entry(role.wallet, role.plan_id, each.receipt, each.entry, each.covered)


def _settlements(role: RoundParty, course: Course, own: Callable[[], OwnClaims]) -> Iterator[Decision]:
    """Settlements are opened, lines posted, and paid."""
    shares, now, plan_id, line = role.contracts.shares, role.connection.now(), role.plan_id, own().line
    bond, account = role.bond(), role.wallet.address
    if course.next is not None and bond.standing in _STAKED:
        first = course.next if role.keeps else course.next + GRACE
        if now >= first and (role.keeps or line):
            why = f"settlement {course.opened} can be opened"
            yield Action(plan_id, "open a settlement", why, Mode.RESOLVE, partial(shares.open, role.wallet, plan_id))
        else:
            yield Wait(plan_id, f"settlement {course.opened} isn't open yet", max(first - 1, now))
    posted = {(int(e["settlement"]), e["worker"]) for e in shares.events("LinePosted", id=plan_id)}
    last = course.opened - 1
    if line and course.opened and (last, account) not in posted and bond.standing is Standing.JOINED:
        until = shares.settlement(plan_id, last).lines_until
        # The last one is waited with: what is logged behind it is never counted.
        since = until - role.terms.line_window // 2 if course.next is None else 0
        if now < since:
            yield Wait(plan_id, f"settlement {last} is the last, and takes one line: more may be logged", since)
        elif now <= until:
            why = f"{len(line)} claims aren't counted, and settlement {last} takes lines"
            act = partial(shares.post, role.wallet, plan_id, last, line, role.commitment)
            yield Action(plan_id, "post a line", why, Mode.DEFEND, act, until)
    for number, worker in sorted(posted):
        if (worker != account and _may_move_on(role, number, worker)) or (
            worker == account and bond.standing is not Standing.SLASHED
        ):
            yield from _pay(role, number, worker)
    if role.keeps:
        yield from _remainders(role, course, now)


def _pay(role: RoundParty, number: int, worker: ChecksumAddress) -> Iterator[Decision]:
    state = pay_state(role.contracts, role.plan_id, number, worker)
    who = "its" if worker == role.wallet.address else f"{worker}'s"
    why = f"{who} line in settlement {number}: {state.why}"
    if state.can_settle:
        mode = Mode.DEFEND if worker == role.wallet.address else Mode.RESOLVE
        act = partial(role.contracts.shares.settle, role.wallet, role.plan_id, number, worker)
        yield Action(role.plan_id, "settle a line", why, mode, act)
    elif state.state in {"waits", "accused"}:
        yield Wait(role.plan_id, why, state.until)


def _may_move_on(role: RoundParty, number: int, worker: ChecksumAddress) -> bool:
    """Whether another's line is this party's business: all are a keeper's, and void ones hold back one's own pay."""
    shares, about = role.contracts.shares, {"id": role.plan_id, "settlement": number, "worker": worker}
    if shares.events("LineVoid", **about) or shares.events("LinePaid", **about):
        return False
    return role.keeps or role.contracts.bonds.bond(role.plan_id, worker).standing is Standing.SLASHED


def _remainders(role: RoundParty, course: Course, now: int) -> Iterator[Decision]:
    shares, terms = role.contracts.shares, role.terms
    for number in range(course.opened):
        settlement = shares.settlement(role.plan_id, number)
        rest = pay_of(terms.pay, max(0, terms.work - settlement.units), terms.work) - settlement.returned
        if now > settlement.closes and rest > 0:
            why = f"{rest} of settlement {number} are pay for work that wasn't done"
            yield Action(
                role.plan_id,
                "close a settlement",
                why,
                Mode.RESOLVE,
                partial(shares.close, role.wallet, role.plan_id, number),
            )


def _stake(role: RoundParty, course: Course, own: Callable[[], OwnClaims]) -> Iterator[Decision]:
    """The stake is put up when all is there to defend it, and taken back when nothing is open."""
    bonds, plan_id, bond, now = role.contracts.bonds, role.plan_id, role.bond(), role.connection.now()
    match bond.standing:
        case Standing.NONE:
            yield _join(role, course)
        case Standing.JOINED:
            if (why := _why_stay(role, course, own())) is None:
                why = "nothing is open, and nothing is left to count"
                yield Action(plan_id, "leave", why, Mode.DEFEND, partial(bonds.leave, role.wallet, plan_id))
            else:
                yield Wait(plan_id, why)
        case Standing.LEAVING:
            if now <= bond.until:
                yield Wait(plan_id, "it leaves, and can be accused for a while", bond.until)
            elif bond.open:
                yield Wait(plan_id, f"it leaves when {bond.open} accusations are decided")
            else:
                why = "it has left in peace"
                yield Action(
                    plan_id, "take the stake back", why, Mode.DEFEND, partial(bonds.depart, role.wallet, plan_id)
                )
        case _:
            yield from _gone(role, bond.standing)


def _join(role: RoundParty, course: Course) -> Decision:
    keeper = role.contracts.bonds.bond(role.plan_id, role.terms.coordinator)
    if role.leaves or course.next is None:
        return Wait(role.plan_id, "it has no stake in this plan, and puts up none", final=True)
    if not role.keeps and keeper.standing is not Standing.JOINED:
        return Wait(role.plan_id, "the coordinator has put up no stake: nobody works for it before it has")
    stake = role.terms.keeper_stake if role.keeps else role.terms.stake
    missing = stake - role.vault.free(role.wallet.address)
    if missing > 0 and role.vault.token is None and role.wallet.balance() <= missing:
        why = f"the stake takes {missing} wei that {role.wallet.address} hasn't"
        return lacks(role.plan_id, why, f"send {missing} wei and gas to {role.wallet.address}")
    why = f"all that it may have to answer with is kept, and the stake is {stake}"
    return Action(role.plan_id, "join with the stake", why, Mode.PROPOSE, partial(_put_up, role, stake))


def _put_up(role: RoundParty, stake: int) -> object:
    role.require_answers(stakes=True)
    _bring(role, stake)
    return role.contracts.bonds.join(role.wallet, role.plan_id)


def _bring(role: RoundParty, amount: int) -> None:
    """Have so much free in the vault."""
    missing = amount - role.vault.free(role.wallet.address)
    if missing > 0:
        role.vault.deposit(role.wallet, missing)


def _why_stay(role: RoundParty, course: Course, own: OwnClaims) -> str | None:
    """Why this party keeps its stake; None if it may leave."""
    if role.bond().open:
        return f"{role.bond().open} accusations are open"
    if role.keeps and course.next is not None:
        return "the keeper stays until all settlements are open"
    shares, account, last = role.contracts.shares, role.wallet.address, course.opened - 1
    for desk in (role.contracts.demands, shares):
        if any(demand.demander == account for demand in desk.demands(role.plan_id)):
            return "a demand of its own is open"
    # Whatever fails in the last settlement is tried again: who leaves posts no line.
    is_last_open = last >= 0 and role.connection.now() <= shares.settlement(role.plan_id, last).lines_until
    if (course.next is not None or is_last_open) and (own.line or own.due):
        return "claims of its own aren't counted yet"
    for number in {int(e["settlement"]) for e in shares.events("LinePosted", id=role.plan_id, worker=account)}:
        if pay_state(role.contracts, role.plan_id, number, account).state not in {"paid", "void"}:
            return f"its line in settlement {number} isn't paid"
    if not role.leaves and course.next is not None:
        return "the training goes on"
    if role.keeps and any(
        role.connection.now() <= shares.settlement(role.plan_id, n).closes for n in range(course.opened)
    ):
        return "lines of the last settlement can be disputed"
    return None


def _gone(role: RoundParty, standing: Standing) -> Iterator[Decision]:
    free = role.vault.free(role.wallet.address)
    if role.leaves and free:
        why = f"nothing of it is at stake, and {free} are free in the vault"
        act = partial(role.vault.withdraw, role.wallet, free)
        yield Action(role.plan_id, "withdraw", why, Mode.DEFEND, act)
        return
    told = "it has left"
    if standing is Standing.SLASHED:
        told = "its stake is lost: a dispute, evidence or a demand that wasn't answered has taken it"
    yield Wait(role.plan_id, f"{told}; --leave takes out what is free in the vault", final=True)
