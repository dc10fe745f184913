"""What a reader says about a format of another version (docs/spec/compatibility.md)."""

from __future__ import annotations

from pol.release import __version__


def other_version(what: str, found: object, known: int) -> str:
    """Why a format isn't read, and what to do. ``known`` is the version that this pol writes; it reads no other."""
    if type(found) is int and found > known:
        advice = f"pol {__version__} reads version {known}; get a newer one: pip install --upgrade proof-of-learning"
    else:
        advice = f"pol {__version__} reads version {known}, and no release has written another one: ask its author"
    return f"{what} has the format version {found!r}: {advice}"
