"""A page as a browser reads it: elements with their attributes, and all text, by the innermost element too."""

from html.parser import HTMLParser


class ParsedPage(HTMLParser):
    """AssertionError: an element isn't closed, or closed twice."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.words: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == [], "an element that isn't closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open:
            self.words.setdefault(self.open[-1], []).append(data)


def require_alone(page: ParsedPage) -> None:
    """It loads nothing, asks nobody and runs nothing."""
    for name, attributes in page.elements:
        assert name not in {"script", "img", "link", "iframe", "object", "base", "form"}
        assert not [key for key in attributes if key.startswith("on") or key in {"src", "href", "action"}]
        assert "url(" not in (attributes.get("style") or "")
    policies = [a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
