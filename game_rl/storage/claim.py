"""The claim in storage that admits one writer for each run."""

import json
import os
import socket
from datetime import UTC, datetime

from pydantic import ValidationError

from game_rl.files.saved import Natural, Saved
from game_rl.storage.faults import SecondWriterError
from game_rl.storage.manifest import run_folder
from game_rl.storage.object_store import ObjectStore


class WriterClaim(Saved):
    """The process that writes to a run, or that wrote last."""

    writer: str
    """Random id of the copy of the run directory."""
    host: str
    pid: int
    epoch: Natural
    """Number of times that the writer has changed."""
    is_active: bool
    """False once the writer has ended and everything is stored."""


class Claim:
    """The right of this copy of a run's directory to write to the run in storage.

    Args:
        writer: random id of this copy.
        take_over: whether `take` may replace the claim of another copy that is active.

    Raises (everywhere):
        SecondWriterError: another copy has the claim.
    """

    def __init__(self, run: str, writer: str, *, take_over: bool) -> None:
        self._name = claim_name(run)
        self._run = run
        self._writer = writer
        self._take_over = take_over
        self.epoch = 0

    def take(self, store: ObjectStore) -> None:
        """Write the claim, unless an active writer has it and `take_over` is False."""
        found = store.get_versioned(self._name)
        while found is None:
            try:
                store.put(self._name, self._content(epoch=0, is_active=True), is_new=True)
            except FileExistsError:
                found = store.get_versioned(self._name)
            else:
                self._take_over = False
                return
        claim = _parsed(found[0])
        if claim is not None and claim.is_active and not (self._is_mine(claim) or self._take_over):
            raise SecondWriterError(_refusal(self._run, claim))
        self.epoch = 0 if claim is None else claim.epoch + (not self._is_mine(claim))
        content = self._content(epoch=self.epoch, is_active=True)
        if not store.replace(self._name, content, known=found[1]):
            self.check(store)
        self._take_over = False  # once: a later claim of another writer is deliberate

    def check(self, store: ObjectStore) -> None:
        """Raise SecondWriterError if another writer has taken over meanwhile."""
        content = store.get(self._name)
        claim = None if content is None else _parsed(content)
        if claim is not None and not (self._is_mine(claim) and claim.epoch == self.epoch):
            raise SecondWriterError(_refusal(self._run, claim))

    def written(self, store: ObjectStore) -> datetime:
        """Return when the claim was written, by the storage's clock."""
        found = store.find(self._name)
        return datetime.now(UTC) if found is None else found.modified

    def release(self, store: ObjectStore) -> None:
        """Mark the claim as inactive, so that the next writer need not take over."""
        self.check(store)
        store.put(self._name, self._content(epoch=self.epoch, is_active=False))

    def _is_mine(self, claim: WriterClaim) -> bool:
        return claim.writer == self._writer and claim.host == socket.gethostname()

    def _content(self, *, epoch: int, is_active: bool) -> bytes:
        claim = WriterClaim(
            writer=self._writer,
            host=socket.gethostname(),
            pid=os.getpid(),
            epoch=epoch,
            is_active=is_active,
        )
        return json.dumps(claim.model_dump(), indent=1).encode()


def claim_name(run: str) -> str:
    return f"{run_folder(run)}/writer.json"


def read_claim(store: ObjectStore, run: str) -> WriterClaim | None:
    """Return the claim to a run, or None if there is none or it cannot be parsed."""
    content = store.get(claim_name(run))
    return None if content is None else _parsed(content)


def refuse_active(store: ObjectStore, run: str) -> None:
    """Raise SecondWriterError if another machine writes to the run, or vanished while doing so."""
    claim = read_claim(store, run)
    if claim is not None and claim.is_active:
        raise SecondWriterError(_refusal(run, claim))


def _parsed(content: bytes) -> WriterClaim | None:
    try:
        return WriterClaim.model_validate_json(content)
    except ValidationError:
        return None


def _refusal(run: str, claim: WriterClaim) -> str:
    return (
        f"the run {run} is uploaded from {claim.host} (process {claim.pid}); if that machine is "
        "gone, or its training has ended, add --take-over, and its later uploads are refused"
    )
