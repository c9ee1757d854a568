"""Requests to the Hugging Face Hub: the only import of huggingface_hub.

The token comes from huggingface_hub's own places (`HF_TOKEN`, `hf auth login`), and is neither read
nor shown here. huggingface_hub repeats requests that fail for a moment.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, hf_hub_url
from huggingface_hub.errors import (
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import (
    build_hf_headers,
    disable_progress_bars,
    get_session,
    hf_raise_for_status,
    http_stream_backoff,
)

from game_rl.errors import StorageError, UsageError
from game_rl.files.durable_files import synced_file
from game_rl.hub.agent_package import HubAddress
from game_rl.system.packages import installed_versions
from game_rl.system.units import format_bytes

_TIMEOUT_S = 60.0  # between two pieces of an answer; the library's default is to wait for ever
_REFUSED = (401, 403)
_CHANGED = (409, 412)  # somebody else has made a commit meanwhile
WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""Pauses before a file is fetched again whose connection was cut."""

logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of repeated requests
disable_progress_bars()


@dataclass(frozen=True)
class RemoteFile:
    """A file of a commit.

    Attributes:
        sha256: of its content; None for a small file, which has only `git_sha1`.
        git_sha1: its name in Git, the SHA-1 of a header and the content.
    """

    nbytes: int
    sha256: str | None
    git_sha1: str

    def is_of(self, sha256: str, git_sha1: str) -> bool:
        return self.sha256 == sha256 if self.sha256 is not None else self.git_sha1 == git_sha1


@dataclass(frozen=True)
class Listing:
    """The files of a repository at a commit, by path."""

    commit: str
    files: Mapping[str, RemoteFile]


class HubRepository:
    """A model repository.

    Args:
        waits_s: pauses before a file is fetched again whose connection was cut.

    Raises (everywhere):
        UsageError: there is no such repository, or the Hub refuses the token.
        StorageError: the Hub cannot be reached, or fails.
    """

    def __init__(self, address: HubAddress, *, waits_s: Sequence[float] = WAITS_S) -> None:
        self.address = address
        self._waits_s = waits_s
        version = installed_versions()["game_rl"]
        self._api = HfApi(library_name="game_rl", library_version=version)
        get_session().timeout = _TIMEOUT_S

    @property
    def url(self) -> str:
        return f"{self._api.endpoint}/{self.address.repo_id}"

    def listing(self) -> Listing | None:
        """Return the files at the address; None if there is no such repository, or it is hidden."""
        with self._named_faults("is read"):
            try:
                found = self._api.model_info(
                    self.address.repo_id,
                    revision=self.address.revision,
                    files_metadata=True,
                    timeout=_TIMEOUT_S,
                )
            except RevisionNotFoundError:
                raise UsageError(
                    f"{self.url} has no branch, tag or commit {self.address.revision}"
                ) from None
            except RepositoryNotFoundError:
                return None
        files = {
            each.rfilename: RemoteFile(
                nbytes=-1 if each.size is None else each.size,
                sha256=None if each.lfs is None else each.lfs.sha256,
                git_sha1=each.blob_id or "",
            )
            for each in found.siblings or ()
        }
        return Listing(found.sha or "", files)

    def create(self, *, private: bool) -> None:
        """Make the repository, unless it exists."""
        with self._named_faults("is made"):
            self._api.create_repo(self.address.repo_id, private=private or None, exist_ok=True)

    def commit(
        self, files: Mapping[str, Path], *, deleted: Sequence[str], message: str, parent: str
    ) -> None:
        """Add and delete files in one commit on top of `parent`.

        If the answer is lost, it is not known whether the commit was made.

        Raises:
            StorageError: somebody else has made a commit since `parent`.
        """
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            CommitOperationAdd(path, file) for path, file in files.items()
        ]
        operations += [CommitOperationDelete(path) for path in deleted]
        with self._named_faults("is written"):
            self._api.create_commit(
                self.address.repo_id,
                operations,
                commit_message=message,
                parent_commit=parent or None,
                revision=self.address.revision,
            )

    def fetch(
        self,
        path: str,
        commit: str,
        remote: RemoteFile,
        target: Path,
        tell: Callable[[int], None] = lambda _: None,
    ) -> str:
        """Fetch a file of a commit to `target`, and return its sha256.

        Args:
            tell: called with the number of bytes of each piece.

        Raises:
            StorageError: it does not arrive whole, or is not what the commit has. Nothing is left
                at `target` then.
        """
        url = hf_hub_url(self.address.repo_id, path, revision=commit, endpoint=self._api.endpoint)
        fault: StorageError | None = None
        for wait_s in (0.0, *self._waits_s):
            time.sleep(wait_s)
            try:
                with self._named_faults(f"is read for {path}"):
                    sha256, git_sha1 = _download(url, path, remote, target, tell)
            except StorageError as error:
                fault = error
                continue
            if remote.is_of(sha256, git_sha1):
                return sha256
            fault = StorageError(
                f"{path} of {self.url} does not arrive as it was stored: its hash differs; pull "
                "again, and if that does not help, tell its author"
            )
            target.unlink()
            tell(-remote.nbytes)
        assert fault is not None
        raise fault

    @contextmanager
    def _named_faults(self, what: str) -> Iterator[None]:
        """Raise errors of the library and of its HTTP client as ours, without their tracebacks.

        Args:
            what: what is done with the repository, for the message.
        """
        try:
            yield
        except RepositoryNotFoundError:
            raise UsageError(
                f"there is no model {self.address.repo_id} on {self._api.endpoint}, or it is "
                "private and this machine is not logged in: hf auth login"
            ) from None
        except HfHubHTTPError as error:
            raise self._fault(error, what) from None
        except OfflineModeIsEnabled:
            raise UsageError(
                "HF_HUB_OFFLINE is set, so the Hub is not contacted; unset it"
            ) from None
        except (UsageError, StorageError):
            raise
        except OSError as error:
            if error.filename is not None:  # of this machine's disk
                raise
            raise self._out_of_reach(error, what) from None
        except (ValueError, RuntimeError) as error:
            cause = f" ({_line(error.__cause__)})" if error.__cause__ else ""
            raise StorageError(
                f"the Hub fails when {self.url} {what}: {_line(error)}{cause}"
            ) from None
        except Exception as error:
            if not type(error).__module__.startswith("http"):
                raise
            raise self._out_of_reach(error, what) from None

    def _fault(self, error: HfHubHTTPError, what: str) -> StorageError | UsageError:
        status = error.response.status_code
        if status in _REFUSED:
            return UsageError(
                f"the Hub refuses when {self.url} {what} (HTTP {status}): log in with hf auth "
                "login, or set HF_TOKEN to a token that may write there"
            )
        if status in _CHANGED:
            return StorageError(f"{self.url} has changed in the meantime; run the command again")
        return StorageError(
            f"the Hub fails when {self.url} {what} (HTTP {status}: {_line(error)}); nothing is "
            "left half done, so run the command again later"
        )

    def _out_of_reach(self, error: Exception, what: str) -> StorageError:
        text = _line(error) or type(error).__name__
        return StorageError(
            f"the Hub cannot be reached when {self.url} {what} ({text}); nothing is left half "
            "done, so run the command again"
        )


def _download(
    url: str, path: str, remote: RemoteFile, target: Path, tell: Callable[[int], None]
) -> tuple[str, str]:
    """Write a file, of at most the bytes that the commit has, and return both its hashes."""
    sha256 = hashlib.sha256()
    git_sha1 = hashlib.sha1(b"blob %d\0" % remote.nbytes, usedforsecurity=False)
    n_bytes = 0
    try:
        with (
            http_stream_backoff(
                "GET",
                url,
                headers=build_hf_headers(library_name="game_rl"),
                timeout=_TIMEOUT_S,
                max_retries=0,  # `fetch` repeats it
            ) as response,
            synced_file(target) as file,
        ):
            hf_raise_for_status(response)
            for piece in response.iter_bytes():
                n_bytes += len(piece)
                if n_bytes > remote.nbytes:
                    break
                file.write(piece)
                sha256.update(piece)
                git_sha1.update(piece)
                tell(len(piece))
        if n_bytes != remote.nbytes:
            more = "more than" if n_bytes > remote.nbytes else f"{format_bytes(n_bytes)} of"
            raise StorageError(
                f"{url} sends {more} the {format_bytes(remote.nbytes)} that {path} has; pull again"
            )
    except BaseException:
        tell(-min(n_bytes, remote.nbytes))
        target.unlink(missing_ok=True)
        raise
    return sha256.hexdigest(), git_sha1.hexdigest()


def _line(error: BaseException) -> str:
    """Return the last line that an error has, as the library's first ones are about its request."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""
