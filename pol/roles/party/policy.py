"""Terms that a party accepts. They are narrower than the contract's bounds, which only exclude the impossible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pol.dispute.dispute_needs import DisputeNeeds
from pol.dispute.encoding.move_sizes import BLOCK_GAS, gas_of
from pol.errors import ProtocolError
from pol.graph.step_program import StepProgram
from pol.incentives.payouts import share_up

if TYPE_CHECKING:  # web3 isn't imported for limits that a help shows
    from eth_typing import ChecksumAddress

    from pol.chain.court.dispute_game import DisputeGame
    from pol.chain.desks.task_registry import Terms

MINUTE, HOUR, DAY = 60, 3600, 24 * 3600


@dataclass(frozen=True)
class TrustedKey:
    """A verifying key of exact proofs whose setup a party trusts."""

    circuit: str
    """The circuit that the key is for: a name known to pol, or a folder."""
    digest: bytes
    """keccak-256 of the verifying key."""


@dataclass(frozen=True)
class Policy:
    """Limits of one party, in seconds, checked before it stakes anything.

    Too short a window or clock makes an honest party lose; too long a one locks up its money.
    """

    min_profile_window: int = HOUR
    """Time to measure the profiled segments again and challenge a false profile."""
    min_training_window: int = HOUR
    max_training_window: int = 90 * DAY
    min_verification_window: int = HOUR
    min_seat_window: int = 10 * MINUTE
    """Time to get a transaction in: bids, claims of a seat, disclosures."""
    min_watch_window: int = HOUR
    """Time for watchers to replay the drawn segments."""
    min_challenge_window: int = HOUR
    """Time to replay the drawn segments and challenge a lie, between two looks at the chain."""
    min_answer_window: int = 2 * HOUR
    """Time to answer a demand for data; the first half belongs to the solver alone."""
    max_window: int = 30 * DAY
    """Upper limit of every window but the training window."""
    min_clock: int = HOUR
    """A side makes about eight moves in a dispute, and may have to replay the segment again before the first."""
    max_clock: int = 7 * DAY
    max_dispute: int = 15 * DAY
    """Longest time that a dispute locks stakes and bond: both clocks, and a grace for each possible move."""
    min_replay_grace: int = 10 * MINUTE
    """Grace to execute a segment or a step when this party's clock has run down."""
    min_move_grace: int = MINUTE
    """Grace for any other move, which executes one step again at most (`pol.roles.process.defence`)."""
    min_margin: int = 16
    """Least margin that a solver accepts, a factor on the profiled distances; exact training needs none."""
    max_executions: int = 1024
    """Most reruns of segments in a profile. Every party builds the reordered programs before it stakes."""
    max_task_bytes: int = 8 << 30
    """Largest size of a task's data and first state. A party holds at most two such tasks in memory."""
    max_step_bytes: int = 16 << 30
    """Largest size of the outputs of one step, all of which a dispute hashes while a clock runs."""
    min_word: int = 6_600
    """Least verifier's stake in basis points of the solver's stake and price together, as it bounds the bond of a word
    that the solver doesn't serve: else false words are cheap (docs/spec/market.md, "Not served")."""
    outage: int = 0
    """Seconds for which the chain may halt, within one window or while this party is on turn in one dispute: every
    window and clock has to be so much longer (docs/spec/dispute.md, "A halted chain")."""
    max_move_gas: int = BLOCK_GAS
    """Most gas of a move in a dispute. A move that doesn't fit into a block loses the stake."""
    trusted_verifiers: Mapping[str, TrustedKey] = field(default_factory=dict)
    """Trusted verifiers of exact proofs, by address: a forged proof decides a dispute."""

    def require(self, terms: Terms) -> None:
        """Check terms before staking on them. Raises ProtocolError: they break this policy; the message says which."""
        if not terms.is_exact:
            self._require_window("profileWindow", terms.profile_window, self.min_profile_window, self.max_window)
        for window, seconds, low, high in (
            ("bidWindow", terms.bid_window, self.min_seat_window, self.max_window),
            ("seatWindow", terms.seat_window, self.min_seat_window, self.max_window),
            ("watchWindow", terms.watch_window, self.min_watch_window, self.max_window),
            ("disclosureWindow", terms.disclosure_window, self.min_seat_window, self.max_window),
            ("trainingWindow", terms.training_window, self.min_training_window, self.max_training_window),
            ("verificationWindow", terms.verification_window, self.min_verification_window, self.max_window),
            ("challengeWindow", terms.challenge_window, self.min_challenge_window, self.max_window),
        ):
            self._require_window(window, seconds, low, high)
        self.require_clock(terms)
        least = share_up(terms.maximum_price + terms.solver_stake, self.min_word)
        if terms.verifier_stake < least:
            raise ProtocolError(
                f"this task has a verifier's stake of {terms.verifier_stake}, this party's policy asks for {least}, so "
                "that false words that the solver doesn't serve are dear enough: leave the task alone, or give the "
                "role another Policy"
            )

    def require_margin(self, terms: Terms) -> None:
        """Check the margin that the thresholds leave to a solver. Raises ProtocolError: it breaks this policy."""
        if not terms.is_exact and terms.margin < self.min_margin:
            raise ProtocolError(
                f"the task has a margin of {terms.margin}, this party's policy asks for {self.min_margin}: leave it "
                "alone, or give the role another Policy"
            )

    def require_reruns(self, terms: Terms) -> None:
        """Check how much work a profile is, before any of it is done. Raises ProtocolError: it breaks this policy."""
        executions = terms.profiled * terms.rerun_count
        if executions > self.max_executions:
            raise ProtocolError(
                f"a profile of this task takes {executions} reruns of a segment, this party's policy admits "
                f"{self.max_executions}: leave it alone, or give the role another Policy"
            )

    def require_step(self, program: StepProgram) -> None:
        """Check how much memory a dispute takes. Raises ProtocolError: it breaks this policy."""
        size = 4 * sum(node.type.numel for node in program.nodes)
        if size > self.max_step_bytes:
            raise ProtocolError(
                f"a dispute about this task hashes {size} bytes of outputs of a step, this party's policy admits "
                f"{self.max_step_bytes}: leave it alone, or raise the bound (`pol run ROLE --step-memory GIB`)"
            )

    def require_gas(self, needs: DisputeNeeds, block: int) -> None:
        """Check the dearest move of a dispute; ``block`` is the gas limit of a block."""
        number, proof = needs.dearest_proof
        for what, gas in (
            (f"the dearest move of a dispute about this task ({needs.dearest_move.move})", gas_of(needs.dearest_move)),
            (f"the proof about node {number} of this task", gas_of(proof)),
        ):
            if gas > min(self.max_move_gas, block):
                raise ProtocolError(
                    f"{what} takes up to {gas} gas; a block has {block}, and this party's policy admits "
                    f"{self.max_move_gas}: leave the task alone, or give the role another Policy"
                )

    def require_verifier(self, verifier: ChecksumAddress) -> TrustedKey:
        """The trusted key behind a verifier contract, whose proofs decide disputes of a task."""
        if verifier not in self.trusted_verifiers:
            raise ProtocolError(
                f"proofs for the verifier {verifier} decide disputes of this task, and the maker of its keys may be "
                "able to forge them: leave it alone, or give the role a Policy that trusts it (--trust-verifier)"
            )
        return self.trusted_verifiers[verifier]

    def require_answer_window(self, window: int) -> None:
        """Check the time that a deployment gives a solver to answer a demand, and how long that delays others."""
        self._require_window("window for answers", window, self.min_answer_window, self.max_window)

    def require_clock(self, terms: Terms) -> None:
        """Check the clock of a challenger: its time to move, and how long its bond is locked."""
        self._require_window("clock", terms.clock, self.min_clock, self.max_clock)

    def require_game(self, game: DisputeGame, clock: int) -> None:
        """Check the graces of a deployed game, and how long it may lock money."""
        (replay, move), longest = game.graces, game.longest(clock)
        _require("replayGrace", replay, self.min_replay_grace, longest)
        _require("moveGrace", move, self.min_move_grace, longest)
        _require("longest dispute", longest, 0, self.max_dispute)

    def _require_window(self, field: str, seconds: int, low: int, high: int) -> None:
        if low <= seconds < low + self.outage:
            raise ProtocolError(
                f"this task has a {field} of {seconds} s, this party's policy asks for {low} s besides a halt of the "
                f"chain of {self.outage} s: nothing is at stake yet; leave the task alone, or accept that a shorter "
                "halt makes you lose (`pol run ROLE --outage SECONDS`)"
            )
        _require(field, seconds, low, high)


def _require(field: str, seconds: int, low: int, high: int) -> None:
    if not low <= seconds <= high:
        raise ProtocolError(
            f"this task has a {field} of {seconds} s, this party's policy asks for {low} to {high} s: nothing is at "
            "stake yet; leave the task alone, or give the role another Policy if you accept it"
        )


PUBLIC_CHAIN = Policy()
"""For real money."""
TEST_NETWORK = Policy(
    min_profile_window=MINUTE,
    min_training_window=MINUTE,
    max_training_window=365 * DAY,
    min_verification_window=MINUTE,
    min_seat_window=MINUTE,
    min_watch_window=MINUTE,
    min_answer_window=MINUTE,
    min_challenge_window=MINUTE,
    max_window=90 * DAY,
    min_clock=10 * MINUTE,
    max_clock=14 * DAY,
    max_dispute=365 * DAY,
    min_replay_grace=0,
    min_move_grace=0,
    min_margin=1,
    max_executions=1 << 20,
    min_word=0,
)
"""Everything that the contract admits (contracts/market/TermsRules.sol)."""
