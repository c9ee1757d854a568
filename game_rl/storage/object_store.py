"""A folder in object storage or on a disk, and where the settings of S3 come from.

Only the uploader's own process, the `remote` commands, and controllers and tasks that meet in
storage may import this: a process that is forked after obstore was used, and executes no other
program, hangs for ever. Messages of obstore never leave this file, since they may repeat what a
server or an address said. A fault is worded from its kind and its HTTP status alone.
"""

import configparser
import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NoReturn
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, from_url

from game_rl.config.output_config import checked_address
from game_rl.errors import UsageError
from game_rl.files.durable_files import sync_directory, sync_file
from game_rl.storage.faults import NO_PATIENCE, Answer, FaultKind, Patience, StoreFault


def aws_endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def aws_settings() -> dict[str, str]:
    """Return settings that obstore does not look up: files of AWS's own tools, and the endpoint."""
    settings = {"endpoint": aws_endpoint()} if aws_endpoint() else {}
    profile = os.environ.get("AWS_PROFILE", "default")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    home = Path("~/.aws").expanduser()
    if not region:
        config = _section("AWS_CONFIG_FILE", home / "config", f"profile {profile}", profile)
        region = config.get("region") or "us-east-1"
    settings["region"] = region
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        found = _section("AWS_SHARED_CREDENTIALS_FILE", home / "credentials", profile)
        for theirs, ours in {
            "aws_access_key_id": "access_key_id",
            "aws_secret_access_key": "secret_access_key",
            "aws_session_token": "session_token",
        }.items():
            if theirs in found:
                settings[ours] = found[theirs]
    return settings


def _section(variable: str, default: Path, *names: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(os.environ.get(variable) or default)
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}
    return next((dict(parser[name]) for name in names if parser.has_section(name)), {})


CHUNK_BYTES = 1 << 20
PART_BYTES = 5 << 20  # the smallest part that S3 accepts
_MOST_PARTS_AT_ONCE = 2  # with one being filled, 16 of the uploader's 56 MB; four: 66 MB
_CONNECT_S = 5.0
_FIRST_BACKOFF_S = 0.2
_RETRIES = 2  # within obstore, of reads and of answers such as 503
_STATUS = re.compile(r"status(?: code)?: (\d{3})")
_ERROR_KINDS: dict[int, FaultKind] = {
    errno.ENOSPC: "full", errno.EDQUOT: "full", errno.EFBIG: "full",
    errno.EACCES: "denied", errno.EPERM: "denied", errno.EROFS: "denied",
    errno.ENOENT: "missing", errno.ENOTDIR: "missing",
}  # fmt: skip
_STATUS_KINDS: dict[int, FaultKind] = {
    401: "denied", 403: "denied", 404: "missing", 408: "slow", 413: "full", 429: "busy",
    507: "full",
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """One stored object.

    Attributes:
        name: path below the store's folder.
        modified: time of the last change, by the storage's clock.
    """

    name: str
    n_bytes: int
    modified: datetime


class ObjectStore:
    """Reads and writes objects under one address.

    Args:
        address: address of a folder, without credentials, which come from the environment.
        timeout_s: timeout of one request, which carries up to 5 MiB.
        patience: repeats requests while storage fails.

    Raises (everywhere):
        StoreFault: the storage refuses, fails or is out of reach.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 60.0,
        patience: Patience = NO_PATIENCE,
    ) -> None:
        try:
            self.address = checked_address(address)
        except ValueError as error:
            raise UsageError(str(error)) from None
        parts = urlsplit(self.address)
        self._folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        self._parts_at_once = _MOST_PARTS_AT_ONCE
        self._patience = patience
        with self._told():
            self._store = self._open(timeout_s)

    @classmethod
    def below(cls, address: str, folder: str, *, patience: Patience = NO_PATIENCE) -> "ObjectStore":
        """Open a folder below an address; on a disk, the folder is created, but not the address.

        Raises:
            StoreFault: there is nothing at the address.
        """
        above = cls(address, patience=patience)
        if above._folder is not None:
            with above._told():
                (above._folder / folder).mkdir(parents=True, exist_ok=True)
        return above.inside(folder)

    def inside(self, folder: str) -> "ObjectStore":
        """Open a folder below this one, with the same patience; on a disk, it must exist."""
        return ObjectStore(f"{self.address}/{folder}", patience=self._patience)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a store holds secrets: open another one in the other process")

    def _open(self, timeout_s: float) -> Any:  # noqa: ANN401 - one of five classes
        if self._folder is not None:
            if not self._folder.is_dir():
                raise StoreFault("missing", self.address)  # a disk that is not mounted, perhaps
            return LocalStore(self._folder)
        options: dict[str, Any] = {
            "client_options": {
                "timeout": timedelta(seconds=timeout_s),
                "connect_timeout": timedelta(seconds=_CONNECT_S),
                "allow_http": aws_endpoint().startswith("http://"),
            },
            "retry_config": {
                "max_retries": _RETRIES,
                "retry_timeout": timedelta(seconds=min(60.0, timeout_s)),
                "backoff": {"init_backoff": timedelta(seconds=_FIRST_BACKOFF_S)},
            },
        }
        if self.address.startswith("s3:"):
            options["config"] = aws_settings()
        return from_url(self.address, **options)

    def put(self, name: str, content: bytes, *, is_new: bool = False) -> None:
        """Write an object in one piece.

        Args:
            is_new: whether to refuse to overwrite an object.

        Raises:
            FileExistsError: the object exists, and `is_new` is True.
        """
        mode: Literal["create", "overwrite"] = "create" if is_new else "overwrite"

        def put() -> None:
            try:
                obstore.put(self._store, name, content, mode=mode, use_multipart=False)
            except AlreadyExistsError:
                raise FileExistsError(name) from None

        self._ask(put)
        self._sync(name)

    def put_pieces(self, name: str, pieces: Callable[[], Iterator[bytes]]) -> None:
        """Write an object piece by piece; it is not visible before it is whole.

        Args:
            pieces: called at each attempt. An exception of its iterator propagates, and nothing is
                written.
        """
        self._ask(
            lambda: obstore.put(
                self._store,
                name,
                pieces(),
                chunk_size=PART_BYTES,
                max_concurrency=self._parts_at_once,
            )
        )
        self._sync(name)

    def one_part_at_a_time(self) -> None:
        """Send one part at a time from now on, for a link that is too slow for several at once."""
        self._parts_at_once = 1

    def replace(self, name: str, content: bytes, *, known: str | None) -> bool:
        """Write an object unless it has changed meanwhile; return whether it was written.

        Args:
            known: the version from `get_versioned`. On a disk, which cannot compare, the object is
                always written.
        """
        if known is None or self._folder is not None:
            self.put(name, content)
            return True

        def put() -> bool:
            try:
                obstore.put(self._store, name, content, mode={"e_tag": known}, use_multipart=False)
            except PreconditionError:
                return False
            except (NotSupportedError, NotImplementedError):
                obstore.put(self._store, name, content, use_multipart=False)
            return True

        return self._ask(put)

    def find(self, name: str) -> Stored | None:
        """Return name, size and time of an object, or None if there is none."""

        def head() -> Stored | None:
            with suppress(FileNotFoundError):
                return _stored(obstore.head(self._store, name))
            return None

        return self._ask(head)

    def get(self, name: str) -> bytes | None:
        """Return a small object, or None if there is none."""
        found = self.get_versioned(name)
        return None if found is None else found[0]

    def get_versioned(self, name: str) -> tuple[bytes, str | None] | None:
        """Return a small object and its ETag, or None if there is none."""

        def get() -> tuple[bytes, str | None] | None:
            with suppress(FileNotFoundError):
                result = obstore.get(self._store, name)
                return bytes(result.bytes()), result.meta["e_tag"]
            return None

        return self._ask(get)

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a large object, a piece at a time.

        Raises:
            FileNotFoundError: there is no such object.
        """
        read = _Reading(self._store, name)
        while piece := self._ask(read):
            yield piece

    def list(self, folder: str) -> Iterator[Stored]:
        batches = self._ask(lambda: list(obstore.list(self._store, folder or None)))
        yield from (_stored(meta) for batch in batches for meta in batch)

    def folders(self, folder: str) -> Sequence[str]:
        """Return the names of the folders directly below a folder, ascending."""
        found = self._ask(lambda: obstore.list_with_delimiter(self._store, folder))
        return sorted(name.rpartition("/")[2] for name in found["common_prefixes"])

    def delete(self, name: str) -> None:
        """Delete an object, if it exists."""

        def delete() -> None:
            with suppress(FileNotFoundError):
                obstore.delete(self._store, name)

        self._ask(delete)

    def clear(self) -> None:
        """Delete everything below the address, and on a disk the folder itself."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        for stored in list(self.list("")):
            self.delete(stored.name)

    def _ask(self, ask: Callable[[], Answer]) -> Answer:
        def told() -> Answer:
            with self._told():
                return ask()

        return self._patience.ask(told)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Convert obstore's errors to StoreFault."""
        try:
            yield
        except (FileExistsError, StoreFault):
            raise
        except FileNotFoundError as error:
            if error.errno is not None:  # raised by us: a local file or an object does not exist
                raise
            raise StoreFault("missing", self.address) from None
        except (BaseError, NotImplementedError) as error:
            raise _fault(error, self.address) from None
        except OSError as error:
            kind = _ERROR_KINDS.get(error.errno or 0, "unreachable")
            raise StoreFault(kind, self.address) from None
        except BaseException as error:
            if type(error).__name__ == "PanicException":  # of obstore; not an Exception
                raise StoreFault("unable", self.address) from None
            raise

    def _sync(self, name: str) -> None:
        """Sync an object on a disk, so that it survives a power failure; obstore syncs nothing."""
        if self._folder is None:
            return
        path = self._folder / name
        with self._told():
            sync_file(path)
            while path != self._folder:
                path = path.parent
                sync_directory(path)


class _Reading:
    """Reads an object piece by piece; after a failure, the next call goes on where it stopped."""

    def __init__(self, store: Any, name: str) -> None:  # noqa: ANN401 - one of five classes
        self._store = store
        self._name = name
        self._stream: Iterator[Any] | None = None
        self._read_bytes = 0
        self._n_bytes: int | None = None

    def __call__(self) -> bytes:
        """Return the next piece; an empty one at the end."""
        if self._read_bytes == self._n_bytes:
            return b""
        try:
            stream = self._stream = self._stream or self._opened()
            piece = bytes(next(stream, b""))
        except BaseException:
            self._stream = None
            raise
        self._read_bytes += len(piece)
        return piece

    def _opened(self) -> Iterator[Any]:
        at: Any = {"range": {"offset": self._read_bytes}} if self._read_bytes else None
        try:
            result = obstore.get(self._store, self._name, options=at)
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "is not in storage", self._name) from None
        self._n_bytes = int(result.meta["size"])
        return iter(result.stream(min_chunk_size=CHUNK_BYTES))


def _stored(meta: Any) -> Stored:  # noqa: ANN401 - a TypedDict that exists for checkers alone
    return Stored(str(meta["path"]), int(meta["size"]), meta["last_modified"])


def _fault(error: Exception, address: str) -> StoreFault:
    text = str(error)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return StoreFault("denied", address, _status(text))
    if isinstance(error, NotSupportedError | NotImplementedError):
        return StoreFault("unable", address)
    status = _status(text)
    if status is not None:
        kind = _STATUS_KINDS.get(status) or ("busy" if status >= 500 else "refused")
        return StoreFault(kind, address, status)
    if "169.254.169.254" in text or "credential" in text.lower():
        return StoreFault("denied", address)
    for number, kind in _ERROR_KINDS.items():
        if f"(os error {number})" in text or f"code: {number}," in text:
            return StoreFault(kind, address)
    is_slow = "timed out" in text or "timeout" in text.lower().replace("retry_timeout", "")
    return StoreFault("slow" if is_slow else "unreachable", address)


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return None if found is None else int(found[1])
