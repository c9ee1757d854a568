"""Runs in storage, and the addresses that name them on a command line."""

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
    """The address of a folder with runs, of a run, or of one of its checkpoints.

    Attributes:
        to: address of the folder, as in `upload.to` of a config.
        run: id of the run; None means the only one there.
        timesteps: timesteps of the checkpoint; None means the newest.
    """

    to: str
    run: str | None = None
    timesteps: int | None = None

    @classmethod
    def parse(cls, text: str) -> "RemoteAddress":
        """Parse `s3://bucket/folder/runs/ID@301056`, where the parts after the folder are optional.

        Raises:
            UsageError: there is no number after the `@`.
        """
        timesteps = None
        if found := _TIMESTEPS.search(text):
            digits = re.sub("[_,]", "", found[1])
            if not digits:
                raise UsageError("@ needs a number of timesteps after it, as in …/runs/ID@301056")
            timesteps, text = int(digits), text[: found.start()]
        text = text.rstrip("/")
        match = _RUN.fullmatch(text)
        if match is None:
            return cls(text, None, timesteps)
        return cls(match["to"], match["run"], timesteps)


def stored_runs(store: ObjectStore) -> dict[str, list[int]]:
    """Return the timesteps of the checkpoints of each run, ascending."""
    runs: dict[str, list[int]] = {}
    for stored in store.list("runs"):
        timesteps = timesteps_of(stored.name)
        if timesteps is not None:
            runs.setdefault(stored.name.split("/")[1], []).append(timesteps)
    return {run: sorted(found) for run, found in sorted(runs.items())}


def find_manifest(store: ObjectStore, address: RemoteAddress) -> RunManifest:
    """Return the manifest of the checkpoint that the address names.

    Raises:
        UsageError: the address matches no checkpoint, or several runs.
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
    """Return the manifest of a checkpoint; raise StorageError if it is gone or damaged."""
    name = manifest_name(run, timesteps)
    content = store.get(name)
    if content is None:
        raise StorageError(f"{store.address}/{name} is gone; another checkpoint may be there")
    return parse_manifest(content, f"{store.address}/{name}")
