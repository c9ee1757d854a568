"""Runs in storage, as they are named on a command line."""

import re
from dataclasses import dataclass

from game_rl.errors import StorageError, UsageError
from game_rl.storage.manifest import (
    RUN_ID,
    RunManifest,
    manifest_name,
    parse_manifest,
    run_folder,
    timesteps_of,
)
from game_rl.storage.object_store import ObjectStore

_RUN = re.compile(rf"(?P<to>.+?)/runs/(?P<run>{RUN_ID.pattern})")
_TIMESTEPS = re.compile(r"@([\d_,]+)$")


@dataclass(frozen=True)
class RemoteAddress:
    """Where runs are, and which of them is meant.

    Attributes:
        to: as `upload.to` of a config.
        run: its id; None: the only one there.
        timesteps: of the checkpoint; None: the newest.
    """

    to: str
    run: str | None = None
    timesteps: int | None = None

    @classmethod
    def parse(cls, text: str) -> "RemoteAddress":
        """Of `s3://bucket/folder/runs/ID@250000`, or less of it."""
        timesteps = None
        if found := _TIMESTEPS.search(text):
            digits = re.sub("[_,]", "", found[1])
            if not digits:
                raise UsageError("after @ comes a number of timesteps, as in …/runs/ID@250000")
            timesteps, text = int(digits), text[: found.start()]
        text = text.rstrip("/")
        match = _RUN.fullmatch(text)
        if match is None:
            return cls(text, None, timesteps)
        return cls(match["to"], match["run"], timesteps)


def stored_runs(store: ObjectStore) -> dict[str, list[int]]:
    """Timesteps of the checkpoints of each run, ascending."""
    runs: dict[str, list[int]] = {}
    for stored in store.list("runs"):
        timesteps = timesteps_of(stored.name)
        if timesteps is not None:
            runs.setdefault(stored.name.split("/")[1], []).append(timesteps)
    return {run: sorted(found) for run, found in sorted(runs.items())}


def find_manifest(store: ObjectStore, address: RemoteAddress) -> RunManifest:
    """The one that the address means.

    Raises:
        UsageError: it means none, or several runs.
    """
    runs = stored_runs(store)
    if address.run is None and len(runs) > 1:
        raise UsageError(
            f"{address.to} has {len(runs)} runs; name one: "
            + ", ".join(f"{address.to}/{run_folder(run)}" for run in list(runs)[:8])
        )
    run = address.run or next(iter(runs), None)
    found = runs.get(run or "", [])
    if run is None or not found:
        raise UsageError(
            f"there is no checkpoint of {'a run' if run is None else run} at {address.to}; "
            f"`game-rl remote list {address.to}` shows what there is"
        )
    timesteps = found[-1] if address.timesteps is None else address.timesteps
    if timesteps not in found:
        shown = ", ".join(f"{there:,}" for there in found)
        raise UsageError(f"{run} has no checkpoint {timesteps:,} there; it has {shown}")
    return read_manifest_of(store, run, timesteps)


def read_manifest_of(store: ObjectStore, run: str, timesteps: int) -> RunManifest:
    """Raise StorageError if it is gone or damaged."""
    name = manifest_name(run, timesteps)
    content = store.get(name)
    if content is None:
        raise StorageError(f"{store.address}/{name} is gone; another checkpoint may be there")
    return parse_manifest(content, f"{store.address}/{name}")
