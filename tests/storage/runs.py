"""Run directories as trainings leave them, made in an instant."""

import json
import random
from pathlib import Path

import numpy as np

from game_rl.checkpoints.checkpoint_files import write_files
from game_rl.config.loader import dump_config
from game_rl.config.output_config import UploadConfig
from game_rl.config.schema import RunConfig
from game_rl.events import CheckpointSaved
from game_rl.events.event_log import EventFile
from game_rl.files.run_dir import RunDir
from game_rl.loggers.log_files import TableSize, table_size
from game_rl.places.place_counts import SavedPlaces
from game_rl.storage.upload_settings import GameFiles, UploadSettings

ROM = "00" * 32


def make_run(root: Path, *timesteps: int, weights_bytes: int = 20_000, best: int = 0) -> RunDir:
    """A run with checkpoints at these timesteps; more can be added."""
    root.mkdir(parents=True, exist_ok=True)
    run_dir = RunDir(root)
    run_dir.identity()
    config = RunConfig(game="duel", total_timesteps=100_000, run_dir=root)
    run_dir.config.write_text(dump_config(config), encoding="utf-8")
    run_dir.tensorboard.mkdir(exist_ok=True)
    for at in timesteps:
        add_checkpoint(run_dir, at, weights_bytes=weights_bytes, best=best or timesteps[0])
    return run_dir


def _with_column_and_row(run_dir: RunDir, timesteps: int) -> TableSize:
    """Give `progress.csv` a column of this name and a row, as a curve that appears does."""
    path = run_dir.progress
    header, *rows = path.read_text(encoding="utf-8").splitlines() if path.exists() else ["x"]
    rows = [*(f"{row}," for row in rows), f"{timesteps}{',1' * (header.count(',') + 1)}"]
    path.write_text("\n".join([f"{header},c{timesteps}", *rows, ""]), encoding="utf-8")
    found = table_size(path)
    assert found is not None
    return found


def add_checkpoint(
    run_dir: RunDir, timesteps: int, *, weights_bytes: int = 20_000, best: int | None = None
) -> None:
    """One more, with the events and the curves until then."""
    rng = np.random.default_rng(timesteps)
    curves = run_dir.tensorboard / "events.out.tfevents.1.host"
    with curves.open("ab") as file:
        file.write(rng.bytes(3_000))
    with run_dir.monitor.open("ab") as file:
        file.write(f"1.5,{timesteps},2.25\n".encode())
    table = _with_column_and_row(run_dir, timesteps)
    with EventFile(run_dir.events) as events:
        n_bytes = events.synced_bytes()
        path = run_dir.checkpoint(timesteps)
        path.parent.mkdir(exist_ok=True)
        config = RunConfig(game="duel", total_timesteps=100_000, run_dir=run_dir.root)
        state = {
            "num_timesteps": timesteps,
            "best": None if best is None else {"timesteps": best, "mean_reward": 1.0},
            "events_bytes": n_bytes,
            "rom_sha256": ROM,
            "config": config.model_dump(mode="json"),
        }
        play = {
            "log": {
                "file_bytes": {curves.name: curves.stat().st_size},
                "appended_bytes": {"monitor.csv": run_dir.monitor.stat().st_size},
                "table": table.model_dump(),
            },
            "evaluations": f"timesteps\n{timesteps}\n",
            "evaluation_episodes": "",
        }
        write_files(
            path,
            [
                ("state.json", [json.dumps(state).encode()]),
                ("play.json", [json.dumps(play).encode()]),
                ("policy.safetensors", [rng.bytes(weights_bytes)]),
                ("places.json", [SavedPlaces(npz=b"%d" % timesteps).model_dump_json().encode()]),
            ],
        )
        events.add(
            CheckpointSaved(
                timesteps=timesteps, checkpoint=path.name, n_bytes=1, seconds=0.1, contents=()
            )
        )


def settings_of(
    run_dir: RunDir,
    address: str,
    *,
    begins_at: int = 0,
    take_over: bool = False,
    keep_remote_last: int | None = None,
) -> UploadSettings:
    return UploadSettings(
        run_dir=run_dir.root,
        run=run_dir.identity().id,
        upload=UploadConfig(to=address, keep_remote_last=keep_remote_last),
        lake=None,
        game=GameFiles(),
        begins_at=begins_at,
        take_over=take_over,
    )


def content_of(root: Path) -> dict[str, bytes]:
    """Every file of a run's checkpoints and reports, by its path."""
    wanted = ("checkpoints", "tensorboard", "videos", "lake")
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and (path.relative_to(root).parts[0] in wanted or path.name == "run.json")
    }


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[random.Random(0).randrange(len(content))] ^= 4
    path.write_bytes(content)
