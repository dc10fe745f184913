"""The public interface as a document: `PYTHONPATH=tests python -m lab.public_api > docs/api.md`."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator

WIDTH = 90
PACKAGES = {
    "pol": "What a trainer, a submitter and a verifier need.",
    "pol.training": "More about records: options of the recorder, lineage, signed heads, sealed stores.",
    "pol.collectives": "Sums over processes whose every bit is defined.",
    "pol.graph": "Extensions of capture.",
    "pol.execution": "Executors of step programs.",
    "pol.verification": "Rounds of drand, and engines that replay on other machines.",
    "pol.rounds": "Trainings of many workers: claims, plans, audits.",
    "pol.decentralised": "Reference trainers of many workers.",
    "pol.roles": "The parties, what each decides, and the process that one runs in.",
    "pol.submission": "A submitter's own training on a market, from the model to its weights.",
    "pol.chain": "What bots and deployers need of a chain.",
    "pol.zk": "Proofs of gradient steps.",
    "pol.demo": "The worked example.",
}


def public_names(package: str) -> list[str]:
    """The names that a package lists."""
    return sorted(importlib.import_module(package).__all__)


def entry(package: str, name: str) -> Iterator[str]:
    """One name: its signature, its line of documentation, and for a class its public members."""
    thing = getattr(importlib.import_module(package), name)
    yield f"### `{package}.{name}`"
    yield ""
    yield "```python"
    yield from _declaration(name, thing)
    if inspect.isclass(thing):
        for member, value in sorted(vars(thing).items()):
            if not member.startswith("_"):
                yield from _member(member, value)
    yield "```"
    yield ""
    if line := (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " "):
        yield line
        yield ""


def document() -> str:
    """docs/api.md."""
    lines = [
        "# The public interface",
        "",
        "Written by `PYTHONPATH=tests python -m lab.public_api > docs/api.md`; a test compares. A name is public if it",
        "stands here, or in a module of `pol.integrations`; everything else may change without notice. Names load when",
        "they are first used.",
        "",
    ]
    for package, sentence in PACKAGES.items():
        lines += [f"## `{package}`", "", sentence, ""]
        for name in public_names(package):
            lines += entry(package, name)
    return "\n".join(lines).rstrip() + "\n"


def _declaration(name: str, thing: object) -> Iterator[str]:
    if inspect.isclass(thing):
        bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
        yield f"class {name}({bases})" if bases else f"class {name}"
        if not issubclass(thing, Exception) and "__init__" in vars(thing):
            yield f"    def __init__{_signature(thing.__init__)}"
    elif inspect.isfunction(thing):
        yield f"def {name}{_signature(thing)}"
    elif inspect.ismodule(thing):
        yield f"{name}: module"
    else:
        yield f"{name}: {type(thing).__name__}"


def _member(name: str, value: object) -> Iterator[str]:
    if isinstance(value, property) and value.fget is not None:
        yield f"    {name}: {_annotation(inspect.signature(value.fget).return_annotation)}"
    elif isinstance(value, classmethod | staticmethod):
        yield f"    @{type(value).__name__}"
        yield f"    def {name}{_signature(value.__func__)}"
    elif inspect.isfunction(value):
        yield f"    def {name}{_signature(value)}"


def _signature(function: Callable[..., object]) -> str:
    """As Python prints it, one parameter a line if it is long; annotations are strings in the source."""
    text = _plain(str(inspect.signature(function)))
    if len(text) <= WIDTH:
        return text
    parameters = [_plain(str(p)) for p in inspect.signature(function).parameters.values()]
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    return "(" + "".join(f"\n        {parameter}," for parameter in parameters) + f"\n    ){text.rpartition(')')[2]}"


def _plain(text: str) -> str:
    text = re.sub(r" = (\w+)\((?=\w+=)[^()]*(?:\([^()]*\)[^()]*)*\)", r" = \1(...)", text)
    text = re.sub(r"<function (?:\w+\.)*<?(\w+)>? at 0x[0-9a-f]+>", r"\1", text)
    text = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", text)
    return re.sub(r"'([^'=]*?)'(?=[,)\]\s]|$| =)", r"\1", text)


def _annotation(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


if __name__ == "__main__":
    print(document(), end="")
