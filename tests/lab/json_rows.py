"""JSON that is committed: a row a line, so that a change shows its rows and nothing else."""

import json
from typing import Any

LINE = 1000
"""Characters of the longest value that stands on one line although it holds others."""


def json_rows(document: Any, *, sort_keys: bool = False) -> str:
    """The text of a committed file, with its last line end; parsing gives the document back."""
    return _text(json.loads(json.dumps(document, sort_keys=sort_keys))) + "\n"


def _text(value: Any) -> str:
    flat = json.dumps(value, separators=(",", ":"))
    if len(flat) <= LINE:
        return flat
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(key)}:{_text(entry)}" for key, entry in value.items()) + "\n}"
    if isinstance(value, list) and any(isinstance(entry, dict | list | str) for entry in value):
        return "[\n" + ",\n".join(map(_text, value)) + "\n]"
    return flat
