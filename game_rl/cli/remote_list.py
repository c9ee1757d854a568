"""`game-rl remote list`: the runs and experiments at an address, as a table or as JSON."""

import argparse
import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from game_rl.storage.inventory import StoredExperiment, StoredRun

_COLUMNS = ("kind", "id", "game", "kept", "newest", "size", "saved", "written by")
_TEXTS = ("kind", "id", "game", "written by")


def list_stored(arguments: argparse.Namespace) -> int:
    runs, experiments = _found(arguments.url)
    if arguments.json:
        found = [*(one.to_json() for one in experiments), *(run.to_json() for run in runs)]
        print(json.dumps(found, indent=2))
    elif not runs and not experiments:
        print(f"there is no run and no experiment at {arguments.url}")
    else:
        Console(width=max(140, Console().width)).print(_table(runs, experiments))
    return 0


def _found(url: str) -> "tuple[list[StoredRun], list[StoredExperiment]]":
    from game_rl.storage.inventory import (
        ExperimentAddress,
        RemoteAddress,
        find_stored,
        list_runs,
        stored_experiments,
    )
    from game_rl.storage.object_store import ObjectStore

    if (one := ExperimentAddress.parse(url)) is not None:
        return [], [find_stored(one)]
    address = RemoteAddress.parse(url)
    store = ObjectStore(address.to)
    runs = [run for run in list_runs(store) if address.run in (None, run.run)]
    return runs, stored_experiments(store) if address.run is None else []


def _table(runs: "list[StoredRun]", experiments: "list[StoredExperiment]") -> Table:
    from game_rl.system.units import format_bytes

    table = Table(box=None, pad_edge=False)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in _TEXTS else "right", no_wrap=True)
    for one in experiments:
        table.add_row(
            one.tree.kind,
            one.experiment,
            one.tree.game or "",
            _counted(len(one.generations), "generation"),
            f"{one.generations[-1]}",
            format_bytes(one.n_bytes),
            one.saved,
            _writer(one.writer_host, is_active=one.is_active),
        )
    for run in runs:
        table.add_row(
            "run",
            run.run,
            run.game,
            _counted(len(run.checkpoints), "checkpoint"),
            f"{run.checkpoints[-1]:,}",
            format_bytes(run.newest_bytes),
            run.newest_saved,
            _writer(run.writer_host, is_active=run.is_active),
        )
    return table


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _writer(host: str | None, *, is_active: bool) -> str:
    return f"{host or ''}{', now' if is_active else ''}"
