"""A run that trains, is uploaded, is fetched elsewhere and goes on."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.storage.inventory import stored_runs
from game_rl.storage.object_store import ObjectStore
from tests.faults.proxy import FaultProxy, Plan
from tests.storage.runs import ROM, add_checkpoint, make_run
from tests.storage.server import KEY, SECRET

GAMES = Path(__file__).parents[2] / "game_rl" / "games"

CONFIG = """\
game: duel
total_timesteps: 256
run_dir: {run_dir}
device: cpu
env: {{n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}}
algorithm: {algorithm}
lake: {lake}
evaluation: {{every_timesteps: 64, episodes: 2, final_episodes: 2, n_envs: 2,
  baselines: false}}
checkpoints: {{every_timesteps: 64, keep_last: 1}}
recording: {{episodes: 1}}
upload: {upload}
"""
PPO = "{n_steps: 16, batch_size: 16, n_epochs: 1}"
DQN = (
    "{name: dqn, replay: {capacity: 256}, learning_starts: 64, train_freq: 8, gradient_steps: 2, "
    "batch_size: 32, target_update_interval: 64}"
)
PLAYED = f"{PPO[:-1]}, learn_from: {{played: {{episodes: EPISODES, clone: {{n_epochs: 2}}}}}}}}"
COMPARED = ("policy.safetensors", "optimizer.safetensors", "arrays.safetensors")


def game_rl(*arguments: str, code: int = 0) -> str:
    """What the command prints, in a process of its own as a user's."""
    ended = subprocess.run(
        [sys.executable, "-m", "game_rl", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=os.environ | {"COLUMNS": "1000"},
        check=False,
    )
    assert ended.returncode == code, ended.stdout
    return ended.stdout


def write_config(
    run_dir: Path, *, upload: str = "null", algorithm: str = PPO, lake: str = "null"
) -> str:
    path = run_dir.with_suffix(".yaml")
    path.write_text(
        CONFIG.format(run_dir=run_dir, upload=upload, algorithm=algorithm, lake=lake),
        encoding="utf-8",
    )
    return str(path)


def hashes(run_dir: Path, timesteps: int) -> dict[str, str]:
    """Of what must be the same, bit for bit."""
    folder = RunDir(run_dir).checkpoint(timesteps)
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in COMPARED}
    return found | {"eval.csv": (run_dir / "eval.csv").read_text(encoding="utf-8")}


@pytest.mark.parametrize(
    "address", ["s3", pytest.param("disk", marks=pytest.mark.soak)], indirect=True
)
@pytest.mark.parametrize(
    ("algorithm", "lake"),  # each trains twice, in seven processes
    [
        pytest.param(PPO, "null", marks=pytest.mark.soak, id="ppo"),
        pytest.param(PLAYED, "null", marks=pytest.mark.soak, id="played"),
        pytest.param(DQN, "{}", marks=pytest.mark.slow, id="dqn"),
    ],
)
def test_a_run_that_is_fetched_elsewhere_goes_on_as_the_one_that_stayed(
    tmp_path: Path, address: str, algorithm: str, lake: str
) -> None:
    stayed, elsewhere = tmp_path / "stayed", tmp_path / "elsewhere"
    episode = {"start_state": "level_1", "frame_skip": 8, "actions": ["right", "punch"] * 9}
    played = tmp_path / "one.json"
    played.write_text(json.dumps(episode), encoding="utf-8")
    algorithm = algorithm.replace("EPISODES", str(played))
    config = write_config(stayed, upload=f"{{to: '{address}'}}", algorithm=algorithm, lake=lake)
    printed = game_rl("train", "--config", config, "--until", "128")
    assert " checkpoint 128 uploaded" in printed
    kept = tmp_path / "kept"
    stayed.rename(kept)  # the machine is gone
    played.unlink()

    runs = stored_runs(ObjectStore(address))
    (run,) = runs
    url = f"{address}/runs/{run}"
    game_rl("train", "--resume", url, "--set", f"run_dir={elsewhere}")
    game_rl("train", "--resume", str(kept), "--set", "upload=null")

    assert hashes(elsewhere, 256) == hashes(kept, 256)
    assert any(event.event == "uploaded" for event in read_events(RunDir(elsewhere)))
    assert 256 in stored_runs(ObjectStore(address))[run]
    assert "every byte is as it was written" in game_rl("remote", "verify", address)


@pytest.mark.parametrize(
    "ending",  # each trains, in a process of its own
    [
        pytest.param("completed", marks=pytest.mark.soak),
        pytest.param("refused", marks=pytest.mark.soak),
        pytest.param("crashed", marks=pytest.mark.slow),
    ],
)
def test_no_secret_is_in_anything_that_a_run_leaves_or_says(
    tmp_path: Path,
    s3_address: str,
    s3_endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
) -> None:
    run_dir = tmp_path / "run"
    config = write_config(run_dir, upload=f"{{to: '{s3_address}', wait_s: 5}}")
    if ending == "crashed":  # of a run that cannot write its journal
        (run_dir / "upload.jsonl").mkdir(parents=True)
    plan: Plan = (lambda *_: "403") if ending == "refused" else (lambda *_: None)
    with FaultProxy(s3_endpoint, plan) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        code = {"completed": 0, "refused": 2, "crashed": 4}[ending]
        printed, arguments = _watched("train", "--config", config, "--until", "64", code=code)
    found = {
        "completed": "uploaded in",
        "refused": "refuses access (HTTP 403)",
        "crashed": "upload.jsonl: Is a directory",
    }
    assert found[ending] in printed
    assert any(text.endswith("upload_process first_request") for text in arguments)
    left = [path.read_bytes() for path in run_dir.rglob("*") if path.is_file()]
    everything = b"\n".join([*left, printed.encode(), *(text.encode() for text in arguments)])
    for secret in (KEY, SECRET, quote(SECRET, safe="")):
        assert secret.encode() not in everything


def _watched(*command: str, code: int) -> tuple[str, set[str]]:
    """What it prints, and the arguments of all its processes."""
    arguments: set[str] = set()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        subprocess.Popen(
            [sys.executable, "-m", "game_rl", *command], stdout=output, stderr=subprocess.STDOUT
        ) as training,
    ):
        while training.poll() is None:
            arguments |= _arguments_of(training.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                training.wait(0.02)  # the shortest of its processes takes ten times as long
        output.seek(0)
        printed = output.read()
    assert training.returncode == code, printed
    return printed, arguments


def _arguments_of(pid: int) -> set[str]:
    """Of a process and of all that it has started."""
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        return {" ".join(process.cmdline()) for process in family}
    except psutil.Error:
        return set()


@pytest.mark.slow
def test_a_run_of_another_game_says_which_rom_it_needs_and_where(
    tmp_path: Path, disk_address: str
) -> None:
    folder = tmp_path / "my_game"
    shutil.copytree(GAMES / "duel", folder, ignore=shutil.ignore_patterns("src"))
    rom = next(folder.glob("*.gb"))
    run_dir = make_run(tmp_path / "run")
    text = run_dir.config.read_text(encoding="utf-8").replace(
        "game: duel", f"game: {folder}/game.yaml"
    )
    run_dir.config.write_text(text, encoding="utf-8")
    add_checkpoint(run_dir, 100, best=100)
    game_rl("remote", "push", str(run_dir.root), "--to", disk_address)

    stored = tmp_path / "mounted disk"
    content = rom.read_bytes()
    assert not [p for p in stored.rglob("*") if p.is_file() and p.read_bytes() == content]
    printed = game_rl("remote", "fetch", disk_address, str(tmp_path / "fetched"))
    place = tmp_path / "fetched" / "game" / rom.name
    assert f"put the ROM with sha256 {ROM} at {place}" in printed
    assert (tmp_path / "fetched" / "game" / "game.yaml").read_text(encoding="utf-8") == (
        folder / "game.yaml"
    ).read_text(encoding="utf-8")
    shutil.copy(rom, place)
    run = run_dir.identity().id
    again = game_rl("status", str(tmp_path / "fetched"), "--json")
    assert json.loads(again)["run"] == run
