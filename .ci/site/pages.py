"""What MkDocs is told beyond its configuration: the home page, the public interface, linked sources, the menu."""

import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from posixpath import relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"
sys.path[:0] = [str(ROOT / "tests")]

from lab.public_api import PACKAGES, public_names  # noqa: E402 - of the checkout, which is no package

_WORKER = "assets/iframe-worker.js"
_FOLDERS = {"spec": "Specification", "quickstarts": "Quickstarts"}
_LINK = re.compile(r"(?<=\])\(([^)#:\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)
_LANGUAGES = {".py": "python", ".sol": "solidity", ".json": "json", ".cpp": "cpp", ".yml": "yaml", ".toml": "toml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that have no file in docs/, and lists all pages in the menu."""
    sys.path[:0] = [str(ROOT)]  # MkDocs takes back what a hook has put there
    for name, text in _generated().items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, _WORKER, content=(HERE / Path(_WORKER).name).read_text()))
    config.nav = _expanded(config.nav, sorted(file.src_uri for file in files.documentation_pages()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links are written for the checkout; here they lead to the page of the same file. Lists and tables get room."""
    prose, *others = _FENCE.split(_relinked(markdown, page.file.src_uri))
    return _spaced(prose) + "".join(
        f"{fence}\n{_spaced(prose)}" for fence, prose in zip(*[iter(others)] * 2, strict=True)
    )


def _generated() -> dict[str, str]:
    """Pages by name: README.md, one for each package, and one for each linked file or folder outside of docs/."""
    pages = {f"python/{package}.md": _interface(package) for package in PACKAGES}
    waiting = [ROOT / "README.md", *(DOCS / folder for folder in _FOLDERS), *DOCS.rglob("*.md")]
    while waiting:
        path = waiting.pop()
        if not path.is_relative_to(DOCS) or path.is_dir():
            name = _page_of(path)
            if name in pages:
                continue
            pages[name] = _content(path)
        if path.suffix == ".md":
            waiting += [target for target in _targets(path) if not target.is_relative_to(DOCS) or target.is_dir()]
    return pages


def _targets(path: Path) -> list[Path]:
    """Files and folders of the checkout that a document links to."""
    found = [(path.parent / target).resolve() for target, _ in _LINK.findall(_FENCE.sub("", path.read_text()))]
    return [target for target in found if target.exists()]


def _page_of(path: Path) -> str:
    """The name of the page that shows a file or a folder."""
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(DOCS):
        name = path.relative_to(DOCS).as_posix()
        return f"{name}/{'README' if (path / 'README.md').exists() else 'index'}.md" if path.is_dir() else name
    name = path.relative_to(ROOT).as_posix()
    return f"source/{name}" if path.suffix == ".md" else f"source/{name}.md"


def _place_of(name: str) -> Path:
    """The folder of the checkout that a page's links start from."""
    if name == "index.md":
        return ROOT
    return (ROOT / name.removeprefix("source/") if name.startswith("source/") else DOCS / name).parent


def _content(path: Path) -> str:
    if path.is_dir():
        entries = sorted(entry.name for entry in path.iterdir() if entry.is_file())
        title, folder = _FOLDERS.get(path.name, path.name), relpath(path, _place_of(_page_of(path)))
        return f"# {title}\n\n" + "".join(f"- [{_title(path / name)}]({folder}/{name})\n" for name in entries)
    text = path.read_text()
    language = _LANGUAGES.get(path.suffix, "text")
    return text if path.suffix == ".md" else f"# {path.relative_to(ROOT)}\n\n````{language}\n{text}````\n"


def _title(path: Path) -> str:
    return path.read_text().partition("\n")[0].removeprefix("# ") if path.suffix == ".md" else path.name


def _interface(package: str) -> str:
    """Docstrings and signatures of all public names of a package, read without importing what they stand for."""
    names = "".join(f"::: {package}.{name}\n\n" for name in public_names(package) if not name.startswith("_"))
    return f"# {package}\n\n{PACKAGES[package]}\n\n{names}"


def _relinked(markdown: str, name: str) -> str:
    def relinked(match: re.Match[str]) -> str:
        target = (_place_of(name) / match[1]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return match[0]
        return f"({relpath(_page_of(target), Path(name).parent.as_posix())}{match[2] or ''})"

    return _LINK.sub(relinked, markdown)


def _spaced(markdown: str) -> str:
    """A blank line before lists and tables: GitHub begins them behind a paragraph, too, Python-Markdown doesn't."""
    spaced: list[str] = []
    before = "prose"
    for line in markdown.removeprefix("\n").split("\n"):
        if before and _kind(line) != _kind(before) and re.match(r"- |1\. |\|", line):
            spaced.append("")
        spaced.append(line)
        before = line
    return "\n".join(spaced)


def _kind(line: str) -> str:
    if line.startswith("|"):
        return "table"
    return "list" if re.match(r"- |\d+\. |\s", line) else "prose"


def _expanded(nav: Any, pages: list[str]) -> Any:
    """The menu with each pattern replaced by the pages that match it and that nothing before or beside it lists."""
    listed = set(_leaves(nav))

    def expand(entry: Any) -> list[Any]:
        if isinstance(entry, list):
            return [[leaf for item in entry for leaf in expand(item)]]
        if isinstance(entry, dict):
            return [{title: expand(value)[0] for title, value in entry.items()}]
        if "*" not in entry:
            return [entry]
        found = [page for page in pages if page.count("/") == entry.count("/") and fnmatch(page, entry)]
        return [page for page in found if page not in listed]

    return expand(nav)[0]


def _leaves(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [leaf for item in inner for leaf in _leaves(item)]
