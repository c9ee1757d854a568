"""The section `executor`, and what a run cannot have with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from game_rl.config.custom_part import part_files
from game_rl.config.output_config import checked_address
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.config.values import NotNegative

MOST_MEMBERS = 1_000
_ADDRESS = r"^(local|auto|[^\s:/@\[\]]+:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5})$"

Parallel = Annotated[int, Field(ge=1, le=MOST_MEMBERS)] | Literal["auto"]


class LocalExecutorConfig(StrictModel):
    """Members are processes on this machine."""

    kind: Literal["local"] = "local"
    """local: processes on this machine."""
    parallel: Parallel = "auto"
    """Number of members (of a study: runs) that train at once; auto: as many as the machine's CPUs
    and memory allow."""


class RayExecutorConfig(StrictModel):
    """Members are tasks of a Ray cluster."""

    kind: Literal["ray"]
    """ray: tasks of a Ray cluster; needs the extra `game_rl[ray]`."""
    address: Annotated[
        str, Field(pattern=_ADDRESS, examples=["local", "auto", "192.168.1.10:6379"])
    ] = "local"
    """local: a private cluster on this machine, which ends with the experiment. HOST:PORT: the
    cluster at this address, of which this machine is a node. auto: the cluster that RAY_ADDRESS
    names, or one that this user started on this machine."""
    parallel: Parallel = "auto"
    """Number of members that train at once; auto: as many as the cluster has CPUs, GPUs and memory
    for."""
    storage: Annotated[
        Annotated[str, AfterValidator(checked_address)] | None,
        Field(examples=["s3://bucket/folder"], repr=False),
    ] = None
    """Address of a folder that this machine and all nodes reach: s3://bucket/folder, gs://…, az://…
    or file:///… Members train on their nodes' own disks, and their files are sent through it to
    run_dir. null: the nodes share the file system of run_dir."""
    gpus_per_member: NotNegative | Literal["auto"] = "auto"
    """Number of GPUs that a member asks for, 0.5 for half of one. auto: its forecast share of this
    machine's GPU, or none if this machine has no GPU."""

    def problems(self) -> Iterator[Problem]:
        gpus = self.gpus_per_member
        if gpus != "auto" and gpus > 1 and gpus != int(gpus):
            yield Problem(
                ("gpus_per_member",),
                f"{gpus:g} is neither a part of one GPU nor a whole number; use {int(gpus)}",
            )

    @property
    def starts_cluster(self) -> bool:
        return self.address == "local"


def _kind(section: Any) -> str:  # noqa: ANN401 - whatever a file has
    """Return the kind of executor that a section describes, local by default."""
    if isinstance(section, dict):
        return str(section.get("kind", "local"))
    return getattr(section, "kind", "local")


ExecutorConfig = Annotated[
    Annotated[LocalExecutorConfig, Tag("local")] | Annotated[RayExecutorConfig, Tag("ray")],
    Discriminator(_kind),
]

_PLACE: Key = ("executor", "storage")
_WAY_OUT = (
    "name a folder that all nodes share as run_dir, and remove executor.storage, or train this "
    "population on one machine"
)


def storage_problems(executor: ExecutorConfig, run: RunConfig) -> Iterator[Problem]:
    """Yield settings of a member's config that need other folders of this machine, or an upload."""
    if not isinstance(executor, RayExecutorConfig) or executor.storage is None:
        return
    algorithm = run.algorithm
    if algorithm.teacher is not None:
        yield _refused("algorithm.teacher", f"the run {algorithm.teacher.run}")
    if algorithm.lakes is not None:
        yield _refused("algorithm.learn_from", "Lakes of other runs")
    if algorithm.played is not None:
        yield _refused("algorithm.learn_from.played", "played episodes")
    if run.lake is not None and run.lake.path is not None:
        yield _refused("lake.path", f"{run.lake.path}, which members share")
    for file in part_files(run.custom_parts, Path.cwd()).values():
        yield Problem(
            _PLACE,
            f"the member's config names a class in {file}, which nodes that share no files with "
            "this machine lack: install it as a package there and here, or name a folder that all "
            "nodes share as run_dir, and remove executor.storage",
            (("member", "callbacks"), ("member", "env", "wrappers")),
        )
    if run.upload is not None:
        yield Problem(
            _PLACE,
            "the files of members that train on their nodes' own disks come to run_dir, and are "
            "not uploaded from the nodes as well: remove member.upload; a population's own "
            "`upload` sends all of run_dir",
            (("member", "upload"),),
        )


def _refused(key: str, what: str) -> Problem:
    message = f"member.{key} names {what}, but members reach only storage; {_WAY_OUT}"
    return Problem(_PLACE, message, (("member", *key.split(".")),))


def one_lake_problems(executor: ExecutorConfig, *, kind: str) -> Iterator[Problem]:
    """Check that all members can write one Lake from where they run."""
    if isinstance(executor, RayExecutorConfig) and executor.storage is not None:
        yield Problem(
            ("executor", "storage"),
            f"members of a {kind} write one Lake, in run_dir, so their nodes must share its file "
            "system: remove the line, or train on one machine",
        )
