"""The order of what is due: by deadlines and, where not all of them can be met, by what is at stake."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pol.roles.party.decisions import Action


def in_order(deeds: Iterable[Action], now: int, seconds: Callable[[Action], float]) -> list[Action]:
    """Deeds by their deadlines. Those that can't be met come last; they are the ones with the least at stake.

    Moore's rule: in the order of deadlines, whenever the work outlasts one, the least deed before it is put off.

    Args:
        now: the chain's time.
        seconds: what a deed is expected to take.
    """
    timely, put_off, end = list[Action](), list[Action](), float(now)
    for deed in sorted(deeds, key=_deadline):
        timely.append(deed)
        end += seconds(deed)
        while timely and deed.due is not None and end > deed.due:
            least = min(timely, key=lambda each: (each.at_stake, -seconds(each)))
            timely.remove(least)
            put_off.append(least)
            end -= seconds(least)
    return timely + put_off


def _deadline(deed: Action) -> tuple[bool, int]:
    return (deed.due is None, deed.due or 0)
