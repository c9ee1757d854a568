"""What Weights & Biases gets of a run, read from the file of its offline mode."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from PIL import Image

from game_rl.files.run_dir import RunDir
from game_rl.loggers.wandb_settings import (
    WANDB_PROCESS,
    WandbSettings,
    journal_rows,
    sent_file,
)
from game_rl.system.child_process import started
from tests.loggers.wandb_file import WandbFile, offline_files, read_wandb_file

pytest.importorskip("wandb", reason="the extra wandb is not installed")

RUN = "0123456789abcdef0123456789abcdef"
# the process gives way to all others: a second of work took it two minutes beside ten busy ones
_WAIT_S = 900


def settings(folder: Path, *, is_exact: bool = True) -> WandbSettings:
    return WandbSettings(
        run_dir=folder,
        run=RUN,
        name="duel",
        project="game-boy",
        entity=None,
        group="studies",
        mode="offline",
        config={"env": {"n_envs": 8}, "seed": 3},
        rows=journal_rows(RunDir(folder).wandb_rows),
        is_exact=is_exact,
    )


def row(number: int, value: float | None = None) -> str:
    timesteps = 100 * (number // 2)  # two rows of one timestep: an evaluation, then an update
    values = {"train/loss": number / 7 if value is None else value}
    return json.dumps({"timesteps": timesteps, "values": values}) + "\n"


def play(folder: Path, rows: Iterable[str], *more: str, is_exact: bool = True) -> str:
    """A session that ends well, with these rows more in the journal; return what it says."""
    with started(WANDB_PROCESS, "run") as process:
        assert process.stdin is not None
        process.stdin.write(settings(folder, is_exact=is_exact).model_dump_json() + "\n")
        with RunDir(folder).wandb_rows.open("a", encoding="utf-8") as journal:
            journal.writelines(rows)
        for line in (*more, "finish"):
            process.stdin.write(line + "\n")
        process.stdin.flush()
        try:
            said, _ = process.communicate(timeout=_WAIT_S)
        finally:
            process.kill()
    assert process.returncode == 0, said
    return said


def cut(folder: Path, n_rows: int) -> None:
    path = RunDir(folder).wandb_rows
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:n_rows]), encoding="utf-8")


def read(folder: Path) -> list[WandbFile]:
    return [read_wandb_file(path) for path in offline_files(folder)]


def losses(files: Iterable[WandbFile]) -> dict[int, float]:
    """The value at each step; a step that appears twice is an error."""
    found: dict[int, float] = {}
    for file in files:
        for step, values in file.rows:
            if "train/loss" in values:
                assert step not in found
                found[step] = values["train/loss"]
    return found


def test_a_run_has_its_config_its_rows_and_timesteps_as_x_axis(tmp_path: Path) -> None:
    clip = tmp_path / "best.gif"
    Image.new("L", (4, 4)).save(clip)
    said = play(
        tmp_path,
        map(row, range(300)),
        f"clip 15000 {clip}",
        f"summary {json.dumps({'final/success_rate': 0.5})}",
    )
    assert said.split() == ["connected"]
    (file,) = read(tmp_path)
    assert file.run.run_id == RUN
    assert (file.run.project, file.run.run_group, file.run.display_name) == (
        *("game-boy", "studies", "duel"),
    )
    config = {item.key: json.loads(item.value_json) for item in file.run.config.update}
    assert config["env"] == {"n_envs": 8}
    assert file.metrics["*"] == "timesteps"
    curve = [(v["timesteps"], v["train/loss"]) for _, v in file.rows if "train/loss" in v]
    assert curve == [(100 * (n // 2), n / 7) for n in range(300)]
    ((_, clipped),) = [(s, v) for s, v in file.rows if any(k.startswith("clip") for k in v)]
    assert clipped["timesteps"] == 15_000
    assert list(tmp_path.glob("wandb/*/files/media/videos/*.gif"))
    assert file.summary["final/success_rate"] == 0.5


@pytest.mark.slow
def test_a_resumed_run_continues_and_sends_nothing_twice(tmp_path: Path) -> None:
    play(tmp_path, map(row, range(10)))
    cut(tmp_path, 6)  # the checkpoint
    play(tmp_path, map(row, range(6, 15)))
    files = read(tmp_path)
    assert [file.run.run_id for file in files] == [RUN, RUN]
    assert losses(files) == {2 * n: n / 7 for n in range(15)}


@pytest.mark.slow
def test_what_a_kill_left_unsent_is_sent_later(tmp_path: Path) -> None:
    play(tmp_path, map(row, range(4)))
    with RunDir(tmp_path).wandb_rows.open("a", encoding="utf-8") as journal:
        journal.writelines(map(row, range(4, 6)))
    play(tmp_path, [row(6), row(7).rstrip("\n")])  # the last one is torn
    assert losses(read(tmp_path)) == {2 * n: n / 7 for n in range(7)}


@pytest.mark.slow
def test_a_stretch_that_is_played_in_another_way_begins_a_new_run(tmp_path: Path) -> None:
    play(tmp_path, map(row, range(10)))
    cut(tmp_path, 6)
    play(tmp_path, (row(n, -1) for n in range(6, 14)), is_exact=False)
    old, new = read(tmp_path)
    assert (old.run.run_id, new.run.run_id) == (RUN, f"{RUN}-2")
    assert losses([new]) == {2 * n: n / 7 if n < 6 else -1 for n in range(14)}


@pytest.mark.slow
def test_other_settings_continue_the_run_if_nothing_was_played_twice(tmp_path: Path) -> None:
    play(tmp_path, map(row, range(4)))
    play(tmp_path, map(row, range(4, 6)), is_exact=False)
    assert {file.run.run_id for file in read(tmp_path)} == {RUN}
    assert losses(read(tmp_path)) == {2 * n: n / 7 for n in range(6)}


@pytest.mark.slow
def test_it_ends_with_the_training_that_was_killed(tmp_path: Path) -> None:
    process = started(WANDB_PROCESS, "run")
    RunDir(tmp_path).wandb_rows.write_text(row(0), encoding="utf-8")
    said, _ = process.communicate(settings(tmp_path).model_dump_json() + "\n", timeout=120)
    assert process.returncode == 0, said
    assert losses(read(tmp_path)) == {0: 0.0}


@pytest.mark.slow
def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    sent_file(tmp_path).parent.mkdir()
    sent_file(tmp_path).write_text("{", encoding="utf-8")
    process = started(WANDB_PROCESS, "run")
    said, _ = process.communicate(settings(tmp_path).model_dump_json() + "\n", timeout=120)
    assert process.returncode == 1
    assert "sent.json" in said


@pytest.mark.slow
def test_nobody_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("WANDB_API_KEY", "NETRC", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    process: subprocess.Popen[str] = started(WANDB_PROCESS, "check")
    process.communicate(timeout=120)
    assert process.returncode == 1


@pytest.mark.slow
def test_a_service_that_does_not_answer_leaves_a_file_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    process = started(WANDB_PROCESS, "run")
    RunDir(tmp_path).wandb_rows.write_text("".join(map(row, range(5))), encoding="utf-8")
    online = settings(tmp_path).model_copy(update={"mode": "online"})
    assert process.stdin is not None
    process.stdin.write(online.model_dump_json() + "\n")
    process.stdin.flush()
    assert process.stdout is not None
    assert "cannot be reached" in process.stdout.readline()
    said, _ = process.communicate("finish\n", timeout=120)
    assert process.returncode == 0, said
    assert "`wandb sync " in said
    assert losses(read(tmp_path)) == {2 * n: n / 7 for n in range(5)}
    assert not list(tmp_path.glob("wandb/run-*"))  # failed attempts leave nothing
