"""A learning record on the Hugging Face hub: uploaded whole, compared with what the hub then holds, fetched back.

push_to_hub("runs/first", "me/first")
pull_from_hub("me/first", "fetched")  # then: pol check fetched
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi, errors
from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile

from pol.errors import OperationalError, ProtocolError
from pol.training.record import learning_record
from pol.training.record.learning_record import DOCUMENT_LIMIT, HEAD, LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.storage import stored_checkpoint
from pol.training.storage.sealing import is_sealed
from pol.training.storage.store import Store, read_up_to

HTTP_ERROR: type[Exception] = vars(errors)["HTTPError"]
"""Of the HTTP library of huggingface_hub, which isn't the same in all of its releases."""
AT_ONCE = 100
"""Files of a commit."""
_OF_STORE = re.compile(r"(record|rounds)\.json|([0-9a-f]{2})/\2[0-9a-f]{62}(\.[a-z]{1,16})?")
"""Objects and heads. No other document of the folder, which could be a keystore."""


def push_to_hub(
    folder: Path | str, repo_id: str, *, revision: str = "main", private: bool | None = None, api: HfApi | None = None
) -> str:
    """Upload a store with a learning record; the commit of the hub that holds all of it.

    Files that the hub has already aren't sent again. The record itself comes last: it never names an object that isn't
    there. Then the hub's list of sizes and hashes is compared with the folder. private: of a new repository. api: with
    an endpoint or a token of its own; by default those of huggingface_hub (`hf auth login`, HF_TOKEN, HF_ENDPOINT).

    Raises:
        ProtocolError: the folder lacks objects of its record, or the repository holds another or a longer record.
        OperationalError: the folder can't be read, the hub failed, or it doesn't hold what was sent.
    """
    place, api = Path(folder), api or HfApi()
    record = _require_complete(place)
    files = {str(path.relative_to(place)): path for path in place.rglob("*") if _is_own(path)}
    files = {name: path for name, path in sorted(files.items()) if _OF_STORE.fullmatch(name)}
    with _hub(f"push {place} to {repo_id}"):
        api.create_repo(repo_id, private=private, exist_ok=True)
        held = _held(api, repo_id, revision)
        if HEAD in held:
            published = _published(api, repo_id, revision)
            if not _continues(record, published):
                raise ProtocolError(f"{repo_id} holds another record, or more of this one: push to another repository")
        missing = [name for name, path in files.items() if name != HEAD and not _is_same(path, held.get(name))]
        for first in range(0, len(missing), AT_ONCE):
            names = missing[first : first + AT_ONCE]
            _commit(api, repo_id, revision, {name: files[name] for name in names}, f"{len(names)} objects of a record")
        if not _is_same(place / HEAD, held.get(HEAD)):
            last = record.checkpoints[-1].step
            _commit(api, repo_id, revision, {HEAD: place / HEAD}, f"Learning record up to step {last}")
        commit = str(api.repo_info(repo_id, revision=revision).sha)
        held = _held(api, repo_id, commit)
    if wrong := [name for name, path in files.items() if not _is_same(path, held.get(name))]:
        raise OperationalError(
            f"{repo_id} doesn't hold {wrong[0]} as it was sent, and {len(wrong) - 1} more: push again, and look for a "
            ".gitignore or another writer in the repository"
        )
    return commit


def pull_from_hub(
    repo_id: str, folder: Path | str, *, revision: str = "main", limit: int | None = None, api: HfApi | None = None
) -> Path:
    """Fetch a record into a folder, which is then a store; `pol check` says whether it is what it claims.

    Only files with names of a store are fetched, and compared with the sizes and hashes in the hub's list. limit: the
    most bytes to fetch; by default what is free on the folder's disk. Nothing is fetched if the list has more.

    Raises:
        ProtocolError: the repository has no record or more than the limit, or the folder holds another or a longer one.
        OperationalError: the hub failed, gave other bytes than it lists, or the disk lacks room for them.
    """
    place, api = Path(folder), api or HfApi()
    with _hub(f"pull {repo_id}"):
        commit = str(api.repo_info(repo_id, revision=revision).sha)
        held = {name: entry for name, entry in _held(api, repo_id, commit).items() if _OF_STORE.fullmatch(name)}
        if HEAD not in held:
            raise ProtocolError(f"{repo_id} has no {HEAD}, so it is no learning record: ask for its right name")
        if (place / HEAD).exists() and not _continues(_published(api, repo_id, commit), _record_in(place)):
            raise ProtocolError(f"{place} holds another record, or more of this one: pull into another folder")
        missing = [name for name, entry in held.items() if not _is_same(place / name, entry)]
        _require_room(repo_id, place, sum(held[name].size for name in missing), limit)
        for name in sorted(missing, key=lambda name: name == HEAD):  # the record last, as it is written
            api.hf_hub_download(repo_id, name, revision=commit, local_dir=place)
            if not _is_same(place / name, held[name]):
                raise OperationalError(f"{repo_id} gave other bytes for {name} than it lists: pull again")
    return place


def _require_room(repo_id: str, place: Path, size: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise ProtocolError(f"{repo_id} has {size} bytes to fetch, more than {limit}: raise limit= if you want them")
    there = next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())
    if size > (free := shutil.disk_usage(there).free):
        raise OperationalError(f"{repo_id} has {size} bytes to fetch, and {there} has {free} free: make room first")


def _commit(api: HfApi, repo_id: str, revision: str, files: Mapping[str, Path], message: str) -> None:
    operations = [CommitOperationAdd(name, str(path)) for name, path in files.items()]
    api.create_commit(repo_id, operations, commit_message=message, revision=revision)


def _held(api: HfApi, repo_id: str, revision: str) -> dict[str, RepoFile]:
    """The files of a repository."""
    try:
        entries = list(api.list_repo_tree(repo_id, recursive=True, revision=revision))
    except EntryNotFoundError:  # no file yet
        return {}
    return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}


def _is_same(path: Path, entry: RepoFile | None) -> bool:
    """Whether a file is the listed one: by SHA-256 if the hub keeps it apart, else by its name in git."""
    if entry is None or not path.is_file() or path.stat().st_size != entry.size:
        return False
    name = hashlib.sha256() if entry.lfs is not None else hashlib.sha1(b"blob %d\0" % entry.size, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            name.update(piece)
    return name.hexdigest() == (entry.blob_id if entry.lfs is None else entry.lfs.sha256)


def _is_own(path: Path) -> bool:
    """Whether it is a file, and no link: a stranger's store could lead to any file of this machine."""
    return path.is_file() and not path.is_symlink()


def _record_in(folder: Path) -> LearningRecord:
    return learning_record.load_record(Store(f"file://{folder.resolve()}"))


def _published(api: HfApi, repo_id: str, revision: str) -> LearningRecord:
    with open(api.hf_hub_download(repo_id, HEAD, revision=revision), "rb") as file:
        return LearningRecord.decode(read_up_to(file, DOCUMENT_LIMIT))


def _continues(longer: LearningRecord, shorter: LearningRecord) -> bool:
    return longer.run == shorter.run and longer.checkpoints[: len(shorter.checkpoints)] == shorter.checkpoints


def _require_complete(folder: Path) -> LearningRecord:
    """The record of a folder that holds every file that it names."""
    if not (folder / HEAD).is_file():
        raise OperationalError(f"{folder} has no {HEAD}: give the folder that a recorder writes")
    store = Store(f"file://{folder.resolve()}")
    run = RecordedRun(store, learning_record.load_record(store))
    for checkpoint in run.record.checkpoints:
        document = folder / checkpoint.object[:2] / checkpoint.object
        if document.is_file() and is_sealed(document.read_bytes()):
            continue  # only chosen keys see which files it names
        for name, size in stored_checkpoint.sizes(run.document(checkpoint)).items():
            path = folder / name[:2] / name
            if not path.is_file() or path.stat().st_size != size:
                raise ProtocolError(
                    f"{folder} lacks {name} of the checkpoint of step {checkpoint.step}, or has it cut: push the "
                    "folder that the recorder wrote"
                )
    return run.record


@contextmanager
def _hub(action: str) -> Iterator[None]:
    """Failures of the hub and of its client, in one line; neither names a token."""
    try:
        yield
    except RepositoryNotFoundError as error:
        raise OperationalError(
            f"can't {action}: the hub knows no such repository, or not for this token: check the name, and log in with "
            "`hf auth login`"
        ) from error
    except (HTTP_ERROR, OSError, ValueError, RuntimeError) as error:
        said = " ".join(f"{error} {error.__cause__ or ''}".split())
        raise OperationalError(f"can't {action}: {said}: try again, all that was sent is kept") from error
