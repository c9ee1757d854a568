"""Folders that are sent as experiments are, without an experiment."""

import shutil
from pathlib import Path

from game_rl.storage.upload_settings import PushSettings, RemoteKeeping
from game_rl.storage.uploader import push_experiment

ID = "0123456789abcdef" * 2
Files = dict[str, bytes]


def settings_of(
    place: Path, address: str, generation: int, keep: RemoteKeeping, *, writer: str = "one"
) -> PushSettings:
    return PushSettings(
        to=address,
        experiment=ID,
        folder=place,
        generation=generation,
        writer=writer,
        game="duel",
        keep=keep,
    )


def push_files(
    place: Path,
    address: str,
    generation: int,
    files: Files,
    *,
    keep: RemoteKeeping | None = None,
) -> int:
    """Send these as what there is after a generation."""
    write_files(place, files)
    return push_experiment(settings_of(place, address, generation, keep or RemoteKeeping()))


def write_files(place: Path, files: Files) -> None:
    """Make the folder what they are, and nothing else."""
    shutil.rmtree(place, ignore_errors=True)
    for name, content in {"experiment.yaml": b"kind", "run.json": b"{}", **files}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_files(place: Path) -> Files:
    found = {
        p.relative_to(place).as_posix(): p.read_bytes() for p in place.rglob("*") if p.is_file()
    }
    return {n: c for n, c in found.items() if n not in ("experiment.yaml", "run.json")}
