"""Checks of a node that shares no files with the controller, but reaches the same storage."""

import platform
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import StorageError
from game_rl.executors.game_needs import GameNeeds
from game_rl.executors.node import programs_problem
from game_rl.storage.faults import Patience
from game_rl.storage.object_store import ObjectStore
from game_rl.system.units import format_bytes
from game_rl.system.versions import installed_versions, source_sha256

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class StorageNeeds:
    """The requirements for every node, made by the controller; see `Needs`.

    Attributes:
        address: address of a folder in storage that only this experiment uses.
        content: content of the mark that the controller has left there.
        versions: versions of the packages that the numbers depend on.
        source: hash of this package's code.
        game: files of the members' game.
        disk_bytes: disk space that a member's run takes on the node.
    """

    address: str
    content: str
    versions: dict[str, str]
    source: str
    game: GameNeeds
    disk_bytes: int

    def problem(self) -> str | None:
        return (
            programs_problem(self.versions, self.source)
            or self.game.problem()
            or self._disk_problem()
        )

    def answer(self, name: str) -> str | None:
        try:
            store = ObjectStore(self.address)
            found = Patience(_PATIENCE_S).ask(lambda: store.get(_mark(self.content)))
            if found == self.content.encode():
                store.put(self._answer(name), self.content.encode())
                return None
        except StorageError as error:
            return f"{error}; a node uses the credentials that `ray start` had, or its own files"
        return f"{self.address} is not the same place there as on the controller's machine"

    def lost_answer(self, name: str) -> str | None:
        store = ObjectStore(self.address)
        found = store.get(self._answer(name))
        store.delete(self._answer(name))
        if found is not None:
            return None
        return (
            f"writes to {self.address} does not arrive here; name storage that is the same place "
            "for all nodes and this machine as executor.storage"
        )

    def _answer(self, name: str) -> str:
        return f"nodes/{self.content}-{name}"

    def _disk_problem(self) -> str | None:
        place = Path(tempfile.gettempdir())
        free = shutil.disk_usage(place).free
        if free >= self.disk_bytes:
            return None
        return (
            f"{place} on {platform.node()} has {format_bytes(free)} free, and a member needs "
            f"{format_bytes(self.disk_bytes)}; start Ray there with TMPDIR on a larger disk"
        )


@contextmanager
def marked_storage(store: ObjectStore, game: GameNeeds, disk_bytes: int) -> Iterator[StorageNeeds]:
    """Keep a mark in storage while the block runs."""
    content = uuid.uuid4().hex
    store.put(_mark(content), content.encode())
    try:
        yield StorageNeeds(
            address=store.address,
            content=content,
            versions=installed_versions(),
            source=source_sha256(),
            game=game,
            disk_bytes=disk_bytes,
        )
    finally:
        with suppress(StorageError):
            store.delete(_mark(content))


def _mark(content: str) -> str:
    return f"nodes/{content}"
