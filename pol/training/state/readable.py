"""Documents of a state in text, for people: plain values by path, without torch and without tensors.

The documents come from strangers: a malformed form is shown as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pol.commitments import canonical_json

Tree: TypeAlias = "str | dict[str, Tree]"
"""A value in text, or named values below it."""


def of_document(name: str, document: bytes) -> Tree:
    """A component's document as a tree."""
    content = canonical_json.decode(document, f"document {name}")
    return of_form(content["value"] if content.keys() == {"value"} else content)


def of_form(form: Any) -> Tree:
    """A value of docs/spec/complete_state.md, "Plain data", as a tree."""
    if isinstance(form, list):
        return {str(i): of_form(item) for i, item in enumerate(form)} or "[]"
    if isinstance(form, dict) and len(form) == 1:
        ((tag, content),) = form.items()
        return _of_tagged(tag, content)
    return json.dumps(form, ensure_ascii=False)


def _of_tagged(tag: str, content: Any) -> Tree:
    if tag in ("tuple", "set", "frozenset") and isinstance(content, list):
        return of_form(content)
    if tag == "deque" and isinstance(content, list) and _is_pair(content):
        return of_form(content[1])
    if tag in ("dict", "counter") and isinstance(content, list) and all(_is_pair(item) for item in content):
        return {_key(key): of_form(item) for key, item in content} or "{}"
    if tag == "float" and isinstance(content, str):
        try:
            return repr(float.fromhex(content))
        except (ValueError, OverflowError):
            pass
    if tag in ("int", "bytes") and isinstance(content, str):
        return content if tag == "int" else f"0x{content}"
    if tag in ("Tensor", "Array") and isinstance(content, str):
        return f"<tensor {content}>"
    return f"{tag} {json.dumps(content, ensure_ascii=False)}"


def leaves(tree: Tree, path: str) -> Iterator[tuple[str, str]]:
    """All values in text with their paths."""
    if isinstance(tree, str):
        yield path, tree
        return
    for name, below in tree.items():
        yield from leaves(below, f"{path}/{name}")


def without_tensors(tree: Tree) -> Tree | None:
    """The tree without references to tensors; None if nothing else is left."""
    if isinstance(tree, str):
        return None if tree.startswith("<tensor ") else tree
    kept = {name: found for name, below in tree.items() if (found := without_tensors(below)) is not None}
    return kept or None


def flat(documents: Mapping[str, bytes]) -> dict[str, str]:
    """All values of some documents by path."""
    return {path: text for name, data in documents.items() for path, text in leaves(of_document(name, data), name)}


def _key(form: Any) -> str:
    text = of_form(form)
    plain = form if isinstance(form, str) else text if isinstance(text, str) else json.dumps(form)
    return plain.replace("%", "%25").replace("/", "%2F")


def _is_pair(item: object) -> bool:
    return isinstance(item, list) and len(item) == 2
