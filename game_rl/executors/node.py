"""Checks that a node of a cluster passes before a member may run there."""

import os
import platform
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from game_rl.run_dir import write_atomic
from game_rl.system.machine import processor_name
from game_rl.system.versions import installed_versions, source_sha256, version_differences

_MARK, _ANSWER = ".controller-", ".node-"


@dataclass(frozen=True)
class NodeNeeds:
    """The requirements for every node of a cluster with shared files, made by the controller.

    Attributes:
        folder: current folder of the controller, to which relative paths refer.
        mark: a file in the experiment's folder that the controller has written.
        content: content of the mark.
        versions: versions of the packages that the numbers depend on.
        source: hash of this package's code.
    """

    folder: Path
    mark: Path
    content: str
    versions: dict[str, str]
    source: str

    def problem(self) -> str | None:
        """Return what is wrong with the machine that calls this, or None."""
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
        return programs_problem(self.versions, self.source)

    def answer(self, name: str) -> str | None:
        """Leave a file for the controller to find; return None, since nothing is wrong."""
        write_atomic(answer_of(self, name), self.content)
        return None

    def lost_answer(self, name: str) -> str | None:
        """On the controller's side, return what is wrong if a node's answer has not arrived."""
        answer = answer_of(self, name)
        found = answer.exists()
        answer.unlink(missing_ok=True)
        if found:
            return None
        return (
            f"writes to {answer.parent} does not arrive here; keep the experiment on a file system "
            "that all nodes share, or name storage that they all reach as executor.storage"
        )


class Needs(Protocol):
    """The requirements for every node, made by the controller."""

    def problem(self) -> str | None:
        """Return what is wrong with the machine that calls this, or None."""

    def answer(self, name: str) -> str | None:
        """Leave an answer for the controller; return what is wrong, or None."""

    def lost_answer(self, name: str) -> str | None:
        """On the controller's side, return the end of a sentence if no answer arrived, or None."""


def programs_problem(versions: dict[str, str], source: str) -> str | None:
    """Return how the versions and the source here differ from these, or None if they do not."""
    differences = version_differences(versions, installed_versions())
    if not differences and source != source_sha256():
        differences = ("the source code of game_rl differs",)
    if differences:
        return f"{', '.join(differences)}; install the controller's versions on all nodes"
    return None


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
    content = uuid.uuid4().hex
    mark = root.absolute() / f"{_MARK}{content}"
    write_atomic(mark, content)
    try:
        yield NodeNeeds(
            folder=Path.cwd(),
            mark=mark,
            content=content,
            versions=installed_versions(),
            source=source_sha256(),
        )
    finally:
        mark.unlink(missing_ok=True)


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
        niceness=0 if os.geteuid() == 0 else os.getpriority(os.PRIO_PROCESS, 0),  # see attempt
        problem=problem,
    )


def warnings_of(nodes: Sequence[NodeFacts]) -> Iterator[str]:
    """Yield warnings about nodes that can train members, but not as this process would."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
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
