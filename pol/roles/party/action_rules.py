"""The rule behind each action of a party: why anybody does it, and where the specification says so.

`pol explain --why ACTION` shows it with what a process had read when it decided.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """Why parties do this."""

    reason: str
    spec: str
    """Page and heading of docs/spec."""


_PUBLIC = "Anybody may make the call, and a party whose money or work waits for it does."
RULES: dict[str, Rule] = {
    # a task's life
    "bid": Rule(
        "The terms are within the policy, and this machine trains and defends the task in time.", "market: Terms"
    ),
    "reveal": Rule("A sealed bid that isn't revealed loses a sixteenth of its stake.", "market: Transitions"),
    "award": Rule(_PUBLIC, "market: Transitions"),
    "train": Rule(
        "A solver that commits no proof in the time that it promised loses its stake.", "market: Transitions"
    ),
    "claim the seat": Rule(
        "The terms are within the policy, and the duty ends in time on this machine.", "market: Seats"
    ),
    "open claims": Rule(_PUBLIC, "market: Seats"),
    "decide the seat": Rule(_PUBLIC, "market: Seats"),
    "post the profile": Rule("A profiler that posts nothing in its time loses its stake.", "market: Profiles"),
    "conclude the profile": Rule(_PUBLIC, "market: Profiles"),
    "post the verdict": Rule("A verifier that posts no verdict in its time loses its stake.", "market: Seats"),
    "open the watch": Rule(_PUBLIC, "market: Transitions"),
    "commit to an error": Rule(
        "A watcher that commits to an error is paid once the error is shown.", "market: Transitions"
    ),
    "collect": Rule("A watcher whose error was shown claims its reward.", "market: Who pays whom"),
    "disclose": Rule("A verifier that doesn't disclose whether it had to err loses its stake.", "market: Transitions"),
    "replay again": Rule(
        "A hidden replay is disclosed in a short window, so it is made before.", "market: Transitions"
    ),
    "settle": Rule(_PUBLIC, "market: Who pays whom"),
    "give back what was reserved": Rule(_PUBLIC, "market: Who pays whom"),
    "remove the solver": Rule(_PUBLIC, "market: Exits"),
    "remove the verifier": Rule(_PUBLIC, "market: Exits"),
    "remove the profiler": Rule(_PUBLIC, "market: Exits"),
    "abandon the task": Rule("The beacon was silent for the longest time allowed: stakes go back.", "market: Exits"),
    "replace the round": Rule("The beacon was silent for a week: another round is drawn.", "market: Exits"),
    "extend the verifier's time": Rule(
        "The verifier's duty waits for the beacon, not for the verifier.", "market: Exits"
    ),
    # data
    "show data": Rule("A solver that leaves a demand unanswered loses its stake.", "market: Data on demand"),
    "demand a state": Rule("A verdict needs a state that no store gives.", "market: Data on demand"),
    "demand the model": Rule(
        "A model that can't be read is paid for when the verdict is settled.", "market: Data on demand"
    ),
    "end a demand": Rule("The demanded data decide nothing any more, and a bond is locked.", "market: Data on demand"),
    "publish the states again": Rule("A second verifier that can't read them ends the training.", "market: Not served"),
    "say it isn't served": Rule(
        "Without the states there is no verdict, and its verifier loses its stake.", "market: Not served"
    ),
    # disputes
    "move": Rule("The side on turn loses the dispute when its clock has run down.", "dispute: Clocks"),
    "claim a timeout": Rule(_PUBLIC, "dispute: Clocks"),
    "settle a dispute": Rule(_PUBLIC, "market: Challenges"),
    "reclaim": Rule("Disputes of this party are over or moot, and bonds are locked.", "market: The bond"),
    "challenge the profile": Rule(
        "Two measurements here contradict the profile, and a challenge pays.", "market: Profiles"
    ),
    "convict the profile": Rule(
        "A shown rerun implies a higher threshold: the profile is void at once.", "market: Profiles"
    ),
    "challenge the verdict": Rule(
        "Two replays here contradict the verdict, and a challenge pays.", "market: Challenges"
    ),
    "screen the log": Rule("A look at the whole log names the segments that are worth a replay.", "market: Objections"),
    "replay a segment": Rule("A suspect is replayed before anything is said about it.", "market: Objections"),
    "object to a segment": Rule("Two replays here contradict the log, and an objection pays.", "market: Objections"),
    "contest a counterclaim": Rule(
        "A false counterclaim that nobody contests fells the proof.", "market: State of an objection"
    ),
    "conclude a counterclaim": Rule(_PUBLIC, "market: State of an objection"),
    "publish proofs": Rule("The submitter asks for proofs, and nothing else is due.", "zk: Proofs by the solver"),
    "settle by proof": Rule("A proof ends the dispute for less than the dispute is worth.", "zk: Proofs by the solver"),
    # rounds
    "answer a demand": Rule("A worker that leaves a demand unanswered loses its stake.", "rounds: Demands"),
    "demand an entry": Rule(
        "The log leaves out a claim of this worker, which isn't paid without it.", "rounds: Demands"
    ),
    "ask for the length of the log": Rule("A keeper that hides the end of the log can hide claims.", "rounds: Demands"),
    "ask for a path": Rule("Two heads of the log may not belong together.", "rounds: Demands"),
    "show a forked log": Rule(
        "Two signed heads that don't extend each other cost the keeper its stake.", "rounds: Evidence"
    ),
    "show a lie": Rule("A replay contradicts a worker's signed claim.", "rounds: Evidence"),
    "show an unstaked member": Rule(
        "A roster with a worker that can lose nothing is its keeper's fault.", "rounds: Evidence"
    ),
    "settle a line": Rule("A line that nobody has refuted in its window is paid.", "rounds: Shares"),
    "open a settlement": Rule(_PUBLIC, "rounds: Shares"),
    "post a line": Rule("A worker is paid by the line that says its work.", "rounds: Shares"),
    "close a settlement": Rule(_PUBLIC, "rounds: Shares"),
    "join with the stake": Rule("Only a worker with a stake is in a roster.", "rounds: Stakes"),
    "withdraw": Rule("Money that is free in the vault belongs in the worker's account.", "rounds: Stakes"),
    "leave": Rule("A worker that trains no more gives notice, so that its stake comes back.", "rounds: Stakes"),
    "take the stake back": Rule("The time for accusations after a worker's notice is over.", "rounds: Stakes"),
}
