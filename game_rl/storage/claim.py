"""One writer a run: a claim in storage that says who it is."""

import json
import os
import socket
from datetime import UTC, datetime

from pydantic import ValidationError

from game_rl.storage.faults import SecondWriterError
from game_rl.storage.manifest import WriterClaim, run_folder
from game_rl.storage.object_store import ObjectStore


class Claim:
    """That this copy of a run's directory writes to the run in storage.

    Args:
        writer: drawn once for this copy.

    Raises (everywhere):
        SecondWriterError: another one does.
    """

    def __init__(self, run: str, writer: str, *, take_over: bool) -> None:
        self._name = claim_name(run)
        self._run = run
        self._writer = writer
        self._take_over = take_over
        self.epoch = 0

    def take(self, store: ObjectStore) -> None:
        """Write the claim, unless another one has it and nobody said to take over."""
        found = store.get_versioned(self._name)
        if found is None:
            try:
                store.put(self._name, self._content(epoch=0, is_active=True), is_new=True)
            except FileExistsError:
                found = store.get_versioned(self._name)
            if found is None:
                return
        claim = _parsed(found[0])
        if claim is not None and not self._may_write(claim):
            raise SecondWriterError(_refusal(self._run, claim))
        self.epoch = 0 if claim is None else claim.epoch + (not self._is_mine(claim))
        content = self._content(epoch=self.epoch, is_active=True)
        if not store.replace(self._name, content, known=found[1]):
            self.check(store)
        self._take_over = False  # once: who takes over later means it

    def check(self, store: ObjectStore) -> None:
        """Raise SecondWriterError if somebody took over meanwhile."""
        content = store.get(self._name)
        claim = None if content is None else _parsed(content)
        if claim is not None and not (self._is_mine(claim) and claim.epoch == self.epoch):
            raise SecondWriterError(_refusal(self._run, claim))

    def written(self, store: ObjectStore) -> datetime:
        """When it was, by the storage's clock."""
        found = store.find(self._name)
        return datetime.now(UTC) if found is None else found.modified

    def release(self, store: ObjectStore) -> None:
        """Everything is stored: whoever goes on need not take over."""
        self.check(store)
        store.put(self._name, self._content(epoch=self.epoch, is_active=False))

    def _may_write(self, claim: WriterClaim) -> bool:
        return self._is_mine(claim) or not claim.is_active or self._take_over

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
    """None if nobody has written to the run, or what stands there is no claim."""
    content = store.get(claim_name(run))
    return None if content is None else _parsed(content)


def refuse_active(store: ObjectStore, run: str) -> None:
    """Raise SecondWriterError if somebody writes to the run, or vanished while doing so."""
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
        "gone, or its training has ended, add --take-over: what it uploads from then on is refused"
    )
