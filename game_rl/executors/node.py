"""What a node of a cluster must have before a member may run there."""

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
    """The controller's side: what every node is compared with.

    Attributes:
        folder: the current one, from which relative paths count.
        mark: a file in the experiment's folder that the controller has written.
        content: of the mark.
        versions: of what the numbers depend on.
        source: a hash of this package's code.
    """

    folder: Path
    mark: Path
    content: str
    versions: dict[str, str]
    source: str

    def problem(self) -> str | None:
        """What is wrong with the machine that asks; None: nothing."""
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
        """Leave a file for the controller to find."""
        write_atomic(answer_of(self, name), self.content)
        return None

    def lost_answer(self, name: str) -> str | None:
        """The controller's side: what is wrong if a node's answer has not arrived."""
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
    """What every node is compared with; made by the controller."""

    def problem(self) -> str | None:
        """What is wrong with the machine that asks; None: nothing."""

    def answer(self, name: str) -> str | None:
        """Have the controller see that this machine reaches it; what is wrong, as above."""

    def lost_answer(self, name: str) -> str | None:
        """On the controller's side: how that went, as the end of a sentence; None: well."""


def programs_problem(versions: dict[str, str], source: str) -> str | None:
    """How what is installed here is not what numbers were said to depend on."""
    differences = version_differences(versions, installed_versions())
    if not differences and source != source_sha256():
        differences = ("game_rl is of another state of its source",)
    if differences:
        return f"{', '.join(differences)}; install on all nodes what the controller has"
    return None


@dataclass(frozen=True)
class NodeFacts:
    """A node's answer.

    Attributes:
        problem: why no member may run there; None: nothing.
        niceness: of what a member's process gets there; above 0 it gives way to others.
    """

    host: str
    processor: str
    niceness: int
    problem: str | None


@contextmanager
def marked(root: Path) -> Iterator[NodeNeeds]:
    """Needs whose mark stands in `root` inside; its name is new, so that no cache knows it.

    The caller is the only controller there: marks that a killed one has left are deleted.
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
    """The file with which a node answers, for the controller to find."""
    return needs.mark.with_name(f"{_ANSWER}{needs.content}-{name}")


def introduce(needs: Needs, name: str) -> NodeFacts:
    """The facts of the node that this runs on, which leaves its answer for the controller."""
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
    """What to say of nodes that can train members, but not as this process would."""
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
            f"members give way to all other programs on {', '.join(late)}; start Ray there with "
            "RAY_worker_niceness=0"
        )
