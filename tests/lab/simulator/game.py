"""One game: everybody's turns in a drawn order, with troubles in between, until the task has ended and nobody waits."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lab.simulator.cast import CHEATS, HONEST, Character
from lab.simulator.world import BROUGHT, World
from node_snapshots import order
from pol.chain.desks.task_registry import Status
from pol.chain.desks.vault_ledger import Ledger, held
from pol.errors import OperationalError
from pol.roles.party.decisions import Decision
from pol.roles.process.party_process import DecisionResult, LoggedDecision, Process

BLOCK, POLL = 12, 12
DAY = 24 * 3600
LONGEST = 60 * DAY
"""Seconds in which every game ends."""
MOST = 700
"""Blocks in which every game ends, unless it is given other ones."""
DOWN = 1800
"""Seconds for which a process may be down: less than half of any window."""
RESTLESS = 12
"""Little whiles in a row after which longer ones pass: somebody tries in vain."""
NESTED = 2
"""Parties that decide before what another one has sent is in a block, one within the other."""
Decide = Callable[[Any, bytes], Decision]


@dataclass(frozen=True)
class Troubles:
    """How often, of a thousand turns or blocks, something goes wrong."""

    down: int = 0
    """A process ends, loses its memory, and starts again some time later."""
    failing: int = 0
    """A node doesn't answer a request."""
    reorganizations: int = 0
    races: int = 0
    """Somebody else moves while a transaction waits for its block."""

    @classmethod
    def drawn(cls, random: Random) -> Troubles:
        """Each kind occurs in half of the games."""
        rates = {"down": 60, "failing": 100, "reorganizations": 30, "races": 500}
        return cls(**{name: rate * random.randrange(2) for name, rate in rates.items()})


@dataclass
class Result:
    """What is wrong with a game, and what was played."""

    seed: int
    cast: tuple[str, ...]
    troubles: Troubles
    wrong: list[str] = field(default_factory=list)
    outcome: str = ""
    blocks: int = 0
    verbs: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    """Who did what, in order."""


class Player:
    """One party of a game: a process with a key, and what becomes of it."""

    def __init__(self, game: Game, character: Character, decide: Decide | None = None) -> None:
        self.game, self.character = game, character
        self._decide = decide or character.decide
        self.until, self.is_active = 0.0, False
        self.is_calm = False
        """Whether it has looked at everything in its last turn, and waits for nothing but a known second."""
        self.start()

    def start(self) -> None:
        """A new process, which remembers nothing."""
        game = self.game
        self.role = game.world.role(self.character, Random(game.random.getrandbits(64)))
        wallet = self.role.wallet
        wallet.sleep, wallet.clock, wallet.tell = lambda _: game.wait(), game.now, lambda told: None
        wallet.__post_init__()
        self.process = Process(self.role, self._decide, note=self._note, poll=POLL, clock=game.now)

    def turn(self) -> None:
        """One turn, unless the process is down or in the middle of one."""
        game = self.game
        if self.is_active or game.now() < self.until:
            return
        self.is_calm = False
        if game.happens(game.troubles.down):
            self.until = game.now() + game.random.randrange(DOWN)
            self.start()
            return
        self.is_active = True
        failing, game.is_failing = game.is_failing, game.happens(game.troubles.failing)
        try:
            taken = self.process.turn()
            self.is_calm = all(_is_calm(made) for made in taken) and not self.process.is_behind
        except OperationalError as error:
            game.result.told.append(f"{game.now():.0f} {self.character.name}: {error}")
        finally:
            self.is_active, game.is_failing = False, failing

    def _note(self, made: LoggedDecision) -> None:
        if made.result is DecisionResult.WAITED:
            return
        result = self.game.result
        result.told.append(f"{made.at} {self.character.name}: {made.verb} ({made.why}): {made.result} {made.detail}")
        if made.result is DecisionResult.DONE:
            result.verbs[f"{self.character.name}: {made.verb}"] += 1
        if made.result is DecisionResult.BROKEN and self.character.is_honest:
            result.wrong.append(f"{self.character.name} can't {made.verb}: {made.detail}")


def _is_calm(made: LoggedDecision) -> bool:
    return made.result is DecisionResult.WAITED and (made.until is None or made.until > made.at)


class Game:
    """A game of a world that follows from a seed."""

    def __init__(
        self, world: World, seed: int, decide: Callable[[Character], Decide | None] = lambda _: None, most: int = MOST
    ) -> None:
        self.world, self.random, self._most = world, Random(seed), most
        world.restore(seed << 32)
        self.troubles = Troubles.drawn(self.random)
        cheats = self.random.sample(CHEATS, self.random.choice((0, 1, 1, 1, 2)))
        self.result = Result(seed, tuple(each.name for each in cheats), self.troubles)
        self._depth = self._calm = self._restless = 0
        self.is_failing = False
        """Whether the node of who has the turn doesn't answer each request."""
        world.chain.trouble = self._trouble
        self.players = [Player(self, each, decide(each)) for each in (*HONEST, *cheats)]
        self.market = world.deployment.market(world.connection)

    def play(self) -> Result:
        """Play to the end."""
        chain, began = self.world.connection, self.now()
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)  # parties tell of each trouble
        order(chain, "evm_setAutomine", False)
        try:
            while self.now() < began + LONGEST and self.world.chain.height < self._most and not self._is_over():
                for player in self.random.sample(self.players, len(self.players)):
                    player.turn()
                if self.happens(self.troubles.reorganizations):
                    blocks = self.world.chain.height - self.world.height
                    order(chain, "anvil_reorg", min(self.random.randrange(1, 4), blocks), [])
                self._pass_time()
        finally:
            logging.disable(before)
            self.world.chain.trouble = lambda method: None
            order(chain, "evm_setAutomine", True)
        self.result.blocks = chain.block_number()
        self.result.wrong += self._wrong()
        return self.result

    def now(self) -> float:
        """The chain's time."""
        return float(self.world.chain.now)

    def happens(self, rate: int) -> bool:
        """Whether something that happens so often of a thousand times happens now."""
        return self.random.randrange(1000) < rate

    def wait(self) -> None:
        """A transaction waits for its block: somebody else may come first."""
        if self._depth < NESTED and self.happens(self.troubles.races):
            self._depth += 1
            self.random.choice(self.players).turn()
            self._depth -= 1
        self._mine(BLOCK)

    def _mine(self, seconds: int) -> None:
        order(self.world.connection, "evm_increaseTime", max(0, seconds - 1))
        order(self.world.connection, "evm_mine")

    def _pass_time(self) -> None:
        """Processes poll: a little while where something has happened, and else until something is due."""
        awake = [player for player in self.players if player.until <= self.now() and player.character.is_honest]
        if not all(player.is_calm for player in awake) or self.world.chain.height > self._calm:
            self._restless += 1
            self._mine(self.random.randrange(POLL, 5 * POLL if self._restless < RESTLESS else 75 * POLL))
            self._calm = self.world.chain.height
            return
        self._restless = 0
        due = [left for player in awake for left in player.process.left() if left > 0]
        down = [player.until - self.now() for player in self.players if player.until > self.now()]
        until = int(min([*due, *down, float(DAY)]))
        self._mine(max(BLOCK, until if self.random.randrange(4) else self.random.randrange(until + 1)))
        self._calm = self.world.chain.height

    def _trouble(self, method: str) -> None:
        is_asked = self.is_failing and method not in {"evm_increaseTime", "evm_mine", "anvil_reorg"}
        if is_asked and self.happens(self.troubles.failing):
            raise ConnectionError("the node doesn't answer")

    def _is_over(self) -> bool:
        """Whether the task is closed, and everybody has had time to get its money."""
        if self.market.registry.task(self.world.task_id).status is not Status.CLOSED:
            return False
        closed = self.market.verdicts.closed_at(self.world.task_id)
        return self.now() > self.market.jackpot.catch_until(closed) + 2 * DAY

    def _wrong(self) -> Iterator[str]:
        """What must not be, after a game."""
        market, task_id = self.market, self.world.task_id
        task = market.registry.task(task_id)
        self.result.outcome = task.outcome.name.lower()
        if not self._is_over():
            yield f"the task hasn't ended in {LONGEST // DAY} days: it is {task.status.name.lower()}"
        ledger = Ledger.of(market.vault)
        yield from ledger.overdrawn
        if held(market.vault) < ledger.owed:
            yield f"the vault holds {held(market.vault)} and owes {ledger.owed}"
        for player in self.players:
            if player.character.is_honest:
                yield from self._lost(player, ledger)
        yield from self._paid_cheats(ledger)

    def _lost(self, player: Player, ledger: Ledger) -> Iterator[str]:
        """What an honest party has lost, or can't get back."""
        own, name = player.role.wallet.address, player.character.name
        bonds = player.character.tickets * self.market.sortition.unit()
        stuck = sum(amount for (_, _, account), amount in ledger.locked.items() if account == own) - bonds
        if stuck:
            yield f"{stuck} wei of the {name} stay locked"
        desks = {getattr(self.market, desk).address: desk for desk in DESKS}
        for event in self.market.vault.events("Forfeited", account=own):
            desk = desks.get(event["desk"], event["desk"])
            if not (name == "submitter" and desk == "settlement") and desk != "demands":
                yield f"the {name} has lost {event['amount']} wei at {desk}"

    def _paid_cheats(self, ledger: Ledger) -> Iterator[str]:
        """A cheat that has gained by it: alone, as one may be paid for what it does to another one."""
        cheats = [player for player in self.players if not player.character.is_honest]
        for player in cheats if len(cheats) == 1 else ():
            bonds = player.character.tickets * self.market.sortition.unit()
            gain = ledger.free[player.role.wallet.address] + bonds - BROUGHT
            if gain > 0:
                yield f"the {player.character.name} has gained {gain} wei"


DESKS: Sequence[str] = (
    "registry", "auction", "seats", "proofs", "profiles", "verdicts", "challenges", "objections", "counterclaims",
    "demands", "settlement", "sortition", "jackpot",
)  # fmt: skip
