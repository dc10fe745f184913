"""Lines "name: meaning" of docstrings, which a reference page would join into one paragraph, as lists."""

import re

from griffe import Extension, Object

_FIELD = re.compile(r"^(\w[\w, ]*): (?=\S)", re.M)


class DocstringFields(Extension):
    """Each paragraph whose lines begin with fields becomes a list of them."""

    def on_instance(self, *, obj: Object, **_: object) -> None:
        """Called for each object that is loaded."""
        if obj.docstring is not None:
            paragraphs = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(_listed(paragraph) for paragraph in paragraphs)


def _listed(paragraph: str) -> str:
    """A list, if the paragraph begins with a field and has another one; continuation lines belong to theirs."""
    if not _FIELD.match(paragraph) or len(_FIELD.findall(paragraph)) < 2:
        return paragraph
    return _FIELD.sub(r"- `\1`: ", paragraph)
