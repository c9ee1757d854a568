"""What a node must have before a member may run there."""

import platform
import shutil
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from game_rl.config.loader import load_yaml_model
from game_rl.emulator.rom_search import find_rom
from game_rl.errors import GameFileError, RomError, StorageError
from game_rl.files.durable_files import write_atomic
from game_rl.files.saved import file_sha256
from game_rl.games.definition import GameDefinition
from game_rl.storage.background import game_files
from game_rl.storage.faults import Patience
from game_rl.storage.object_store import ObjectStore
from game_rl.system.machine import processor_name
from game_rl.system.packages import installed_versions, source_sha256, version_differences
from game_rl.system.processes import is_root, own_niceness
from game_rl.system.units import format_bytes

_MARK = ".controller-"
_ANSWER = ".node-"


@dataclass(frozen=True, kw_only=True)
class Needs(ABC):
    """The requirements for every node, made by the controller.

    Attributes:
        content: content of the mark that the controller has left where the files are exchanged.
        versions: versions of the packages that the numbers depend on.
        source: hash of this package's code.
    """

    content: str = field(default_factory=lambda: uuid.uuid4().hex)
    versions: dict[str, str] = field(default_factory=installed_versions)
    source: str = field(default_factory=source_sha256)

    def problem(self) -> str | None:
        """Return what is wrong with the machine that calls this, or None."""
        differences = version_differences(self.versions, installed_versions())
        if not differences and self.source != source_sha256():
            differences = ("the source code of game_rl differs",)
        if differences:
            return f"{', '.join(differences)}; install the controller's versions on all nodes"
        return None

    @abstractmethod
    def answer(self, name: str) -> str | None:
        """Leave an answer for the controller; return what is wrong, or None."""

    @abstractmethod
    def lost_answer(self, name: str) -> str | None:
        """On the controller's side, return the end of a sentence if no answer arrived, or None."""


@dataclass(frozen=True, kw_only=True)
class NodeNeeds(Needs):
    """What nodes need that share files with the controller.

    Attributes:
        folder: current folder of the controller, to which relative paths refer.
        root: the experiment's folder.
    """

    folder: Path = field(default_factory=Path.cwd)
    root: Path

    @property
    def mark(self) -> Path:
        """The file in the experiment's folder that the controller has written."""
        return self.root / f"{_MARK}{self.content}"

    def problem(self) -> str | None:
        try:
            found = self.mark.read_text(encoding="ascii")
        except OSError as error:
            found = f"({error.strerror})"
        if found != self.content or not self.folder.is_dir():
            place = self.mark.parent if found != self.content else self.folder
            return (
                f"{place} is not the same folder here as on the controller's machine; keep the "
                "experiment, and the folder that the command is started in, on a file system that "
                "all nodes share, at the same path, or name storage that they all reach as "
                "executor.storage"
            )
        return super().problem()

    def answer(self, name: str) -> str | None:
        write_atomic(answer_of(self, name), self.content)
        return None

    def lost_answer(self, name: str) -> str | None:
        answer = answer_of(self, name)
        found = answer.exists()
        answer.unlink(missing_ok=True)
        if found:
            return None
        return (
            f"writes to {answer.parent} does not arrive here; keep the experiment on a file system "
            "that all nodes share, or name storage that they all reach as executor.storage"
        )


@dataclass(frozen=True)
class NodeFacts:
    """A node's answer.

    Attributes:
        niceness: niceness that a member's process gets there. Above 0, it gives way to others.
        problem: why no member may run there, or None.
    """

    host: str
    processor: str
    niceness: int
    problem: str | None


@contextmanager
def marked(root: Path) -> Iterator[NodeNeeds]:
    """Keep a mark in `root` while the block runs; its name is new, so that no cache has it.

    The caller is the only controller there: marks that a killed controller left are deleted.
    """
    for left in (*root.glob(f"{_MARK}*"), *root.glob(f"{_ANSWER}*")):
        left.unlink(missing_ok=True)
    needs = NodeNeeds(root=root.absolute())
    write_atomic(needs.mark, needs.content)
    try:
        yield needs
    finally:
        needs.mark.unlink(missing_ok=True)


def answer_of(needs: NodeNeeds, name: str) -> Path:
    """Return the file with which a node answers the controller."""
    return needs.mark.with_name(f"{_ANSWER}{needs.content}-{name}")


def introduce(needs: Needs, name: str) -> NodeFacts:
    """Check the node that this runs on, leave its answer, and return its facts."""
    problem = needs.problem()
    if problem is None:
        problem = needs.answer(name)
    return NodeFacts(
        host=platform.node(),
        processor=processor_name(),
        niceness=0 if is_root() else own_niceness(),  # see attempt
        problem=problem,
    )


def warnings_of(nodes: Sequence[NodeFacts]) -> Iterator[str]:
    """Yield warnings about nodes that can train members, but not as this process would."""
    own = own_niceness()
    by_processor = {node.processor: node.host for node in nodes}
    if len(by_processor) > 1:
        found = ", ".join(f"{host} has {name}" for name, host in by_processor.items())
        yield (
            f"processors differ: {found}; numbers are the same, bit for bit, only on processors of "
            "one model, so this population cannot be repeated exactly"
        )
    late = sorted({node.host for node in nodes if node.niceness > own})
    if late:
        yield (
            f"members have a lower priority than other programs on {', '.join(late)}; start "
            "Ray there with RAY_worker_niceness=0"
        )


_PATIENCE_S = 30.0


@dataclass(frozen=True)
class GameNeeds:
    """The files that nodes must have of a user's own game.

    Attributes:
        files: sha256 of each file, by its path. Empty for a bundled game.
        rom: path of the ROM among them, or None for a bundled game and for a ROM found by hash.
        rom_hashes: hashes of a ROM that each node finds by them (see `find_rom`).
    """

    files: dict[str, str] = field(default_factory=dict)
    rom: str | None = None
    rom_hashes: dict[str, str] = field(default_factory=dict)

    def problem(self) -> str | None:
        """Return which file this machine lacks or has with other content, or None."""
        for path, sha256 in self.files.items():
            found = _sha256(Path(path))
            if found != sha256:
                what = f"the ROM {path}" if path == self.rom else path
                state = "is not there" if found is None else "has different content there"
                return (
                    f"{what} {state}; a game of your own is never sent: copy its folder, with the "
                    f"ROM, to the same path on every node (this file has sha256 {sha256})"
                )
        try:
            if self.rom_hashes:
                find_rom(self.rom_hashes, in_current_folder=False)
        except RomError as error:
            return f"{error}; ROMs are never sent, and a member has a current folder of its own"
        return None


@dataclass(frozen=True, kw_only=True)
class StorageNeeds(Needs):
    """What nodes need that share no files with the controller.

    Attributes:
        address: address of a folder in storage that only this experiment uses.
        game: files of the members' game.
        disk_bytes: disk space that a member's run takes on the node.
    """

    address: str
    game: GameNeeds
    disk_bytes: int

    def problem(self) -> str | None:
        problem = super().problem() or self.game.problem()
        if problem is not None:
            return problem
        place = Path(tempfile.gettempdir())
        free = shutil.disk_usage(place).free
        if free >= self.disk_bytes:
            return None
        return (
            f"{place} on {platform.node()} has {format_bytes(free)} free, and a member needs "
            f"{format_bytes(self.disk_bytes)}; start Ray there with TMPDIR on a larger disk"
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


@contextmanager
def marked_storage(store: ObjectStore, game: GameNeeds, disk_bytes: int) -> Iterator[StorageNeeds]:
    """Keep a mark in storage while the block runs."""
    needs = StorageNeeds(address=store.address, game=game, disk_bytes=disk_bytes)
    store.put(_mark(needs.content), needs.content.encode())
    try:
        yield needs
    finally:
        with suppress(StorageError):
            store.delete(_mark(needs.content))


def _mark(content: str) -> str:
    return f"nodes/{content}"


def game_needs(game: str) -> GameNeeds:
    """Return the needs of the game that a config names.

    Raises:
        GameFileError: a file of it is missing here.
    """
    found = game_files(game)
    if found.game_file is None:
        return GameNeeds()
    file = found.paths[found.game_file]
    definition = load_yaml_model(file, GameDefinition, error=GameFileError)
    rom = None if definition.rom.path is None else file.parent / definition.rom.path
    hashes = {}
    for path in (*([] if rom is None else [rom]), *found.paths.values()):
        sha256 = _sha256(path)
        if sha256 is None:
            raise GameFileError(f"{path} cannot be read")
        hashes[str(path)] = sha256
    if rom is None:
        return GameNeeds(hashes, rom_hashes=definition.rom.hashes)
    return GameNeeds(hashes, str(rom))


def _sha256(path: Path) -> str | None:
    """Return the sha256 of a file, or None if it is missing or unreadable."""
    try:
        return file_sha256(path)
    except OSError:
        return None
