"""Messages between workers: a signed claim with tensors of its end, checked before they are used.

A message is ``u32 length || entry || u32 length || slots of the end || file of the tensors`` (docs/spec/rounds.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from pol.commitments.tensor import tensor_root
from pol.errors import ProtocolError
from pol.graph.node_names import ProgramNames
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.claim_author import MadeClaim
from pol.rounds.log.log_entries import ClaimEntry, decode_entry, encode_entry, require_author
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.round_claim import decode_end, encode_end
from pol.training.storage.store import Store
from pol.training.task import task_tensors


def slots_of(names: ProgramNames, wanted: Sequence[str]) -> list[int]:
    """The numbers of slots by name. Raises ProtocolError: there is no such slot."""
    if missing := [name for name in wanted if name not in names.slots]:
        raise ProtocolError(f"the program has no slot {missing[0]}: it has {', '.join(names.slots)}")
    return [names.slots.index(name) for name in wanted]


def encode_message(store: Store, plan: RoundsPlan, made: MadeClaim, slots: Sequence[int]) -> bytes:
    """The message that brings some slots of a claim's end."""
    loaded = load_phase(store, plan.phases[made.entry.claim.phase])
    names = [loaded.names.slots[slot] for slot in slots]
    types = [loaded.program.slots[slot].type for slot in slots]
    file = task_tensors.encode(names, types, [made.words[slot] for slot in slots])
    return _long(encode_entry(made.entry)) + _long(encode_end(made.end)) + file


def decode_message(store: Store, plan: RoundsPlan, data: bytes, slots: Sequence[int]) -> MadeClaim:
    """The claim in a message with these slots of its end; nothing in it is believed unchecked."""
    entry_data, rest = _split(data)
    end_data, file = _split(rest)
    entry = decode_entry(entry_data)
    if not isinstance(entry, ClaimEntry) or entry.claim.plan != plan.digest or entry.claim.phase >= len(plan.phases):
        raise ProtocolError("a message isn't a claim of this plan: leave its sender out")
    require_author(entry)
    end = decode_end(end_data, entry.claim.end)
    loaded = load_phase(store, plan.phases[entry.claim.phase])
    if len(end) != len(loaded.program.slots):
        raise ProtocolError(f"the message of {entry.worker} has {len(end)} slots: leave its sender out")
    types = [loaded.program.slots[slot].type for slot in slots]
    words = task_tensors.decode(file, [loaded.names.slots[slot] for slot in slots], types)
    for slot, type_, tensor in zip(slots, types, words, strict=True):
        if tensor_root(type_, tensor) != end[slot].root:
            raise ProtocolError(f"the message of {entry.worker} holds another {loaded.names.slots[slot]} than it signs")
    return MadeClaim(entry, tuple(end), dict(zip(slots, words, strict=True)))


def _long(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _split(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise ProtocolError("a message is cut off: ask its sender for it again")
    return data[4 : 4 + size], data[4 + size :]
