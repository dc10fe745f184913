"""The release assets of a public run: ``python -m lab.rounds.public_run FOLDER [--seed N]``.

Four workers, one of which lies, on a chain of its own (anvil). Beside the archive lie its page and the digests of both.
"""

import argparse
import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from anvil_node import anvil_node

NAME = "public-run"


def make(folder: Path, seed: int = 0) -> list[Path]:
    """Make a run, and pack it; the files that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, anvil_node() as url:
        run = Path(scratch) / NAME
        verb = [sys.executable, "-m", "pol.cli.main", "demo", "--decentralised", "--seed", str(seed), "--rpc", url]
        subprocess.run([*verb, "--out", NAME], cwd=scratch, check=True)
        archive, page = folder / f"{NAME}.tar.gz", folder / f"{NAME}.html"
        archive.write_bytes(packed(run))
        shutil.copy(run / "page.html", page)
    sums = folder / "SHA256SUMS"
    found = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in (archive, page))
    sums.write_text("".join(found))
    return [archive, page, sums]


def packed(run: Path) -> bytes:
    """A folder as an archive: the same bytes for the same files, whoever packs them and when."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for file in sorted(path for path in run.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"{run.name}/{file.relative_to(run)}")
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(entry, content)
    return out.getvalue()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--seed", type=int, default=0)
    given = asked.parse_args()
    for written in make(given.folder, given.seed):
        print(f"{written}  {written.stat().st_size:,} bytes")
