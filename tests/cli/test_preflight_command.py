"""Preflight and tuning at the command line."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.emulator.state_speed import SWITCH, describe_states
from tests.tiny_run import TINY

HANG_GUARD_S = 60
Output = pytest.CaptureFixture[str]
TOO_LARGE = [
    word
    for value in (
        "total_timesteps=1_000_000_000",
        "env.observation={size: full, colour: rgb}",
        "algorithm={n_steps: 1_000_000, batch_size: 1_000_000, micro_batch_size: null}",
        "evaluation.every_timesteps=1_000_000_000",
        "checkpoints.every_timesteps=1_000_000_000",
    )
    for word in ("--set", value)
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    return path


def call(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.slow
def test_a_probe_tells_how_fast_this_machine_trains_and_how_a_lake_compresses_the_game(
    config: Path, capsys: Output
) -> None:
    arguments = ["preflight", "--config", config, "--set", "lake={}"]
    assert call(*arguments) == 0
    assert "lake      not measured: --probe measures it" in capsys.readouterr().out
    assert call(*arguments, "--probe", "--json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    speed, growth = found["speed"], found["growth"]
    assert speed["timesteps_per_s"] == pytest.approx(192 / speed["wall_s"])
    assert all(seconds > 0 for seconds in speed["seconds"].values())
    assert growth[-1]["timesteps"] == 192
    assert 0 < growth[-1]["on_disk"] < growth[-1]["packed"] < growth[-1]["raw"]
    assert not printed.err


@pytest.mark.parametrize(
    ("arguments", "why", "status"),
    [
        ([], "--probe measures it in about 20 seconds", 0),
        (["--probe", "--on", "ram=32GiB,cpus=8"], "--on describes another machine", 0),
        (["--probe", *TOO_LARGE], "the run does not fit", 3),
    ],
    ids=["not asked", "another machine", "too large"],
)
def test_speed_that_is_not_measured_says_why(
    arguments: list[str], why: str, status: int, config: Path, capsys: Output
) -> None:
    assert call("preflight", "--config", config, *arguments) == status
    assert f"speed     not measured: {why}" in capsys.readouterr().out


def test_how_states_are_saved_is_said_of_this_machine_alone(
    config: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "0")
    assert call("preflight", config) == 0
    line = f"states    slow, by PyBoy itself: {SWITCH} is 0"
    assert line in capsys.readouterr().out.splitlines()
    assert call("preflight", config, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["states"] == {"fast": False, "why_slow": f"{SWITCH} is 0"}
    monkeypatch.delenv(SWITCH)
    assert call("preflight", config) == 0
    assert f"states    {describe_states()}" in capsys.readouterr().out.splitlines()
    for words in ([], ["--json"]):
        assert call("preflight", config, "--on", "ram=32GiB,cpus=8", *words) == 0
        assert "states  " not in (printed := capsys.readouterr().out)
        assert '"states"' not in printed


def test_the_smallest_machine_is_printed_and_fits(config: Path, capsys: Output) -> None:
    assert call("preflight", config, "--recommend") == 0
    printed = capsys.readouterr().out
    assert "SMALLEST MACHINE  1 core, 2 GiB of RAM, no GPU, " in printed
    option = re.search(r"ram=\S+,vram=0,disk=\S+,cpus=1", " ".join(printed.split()))
    assert option is not None
    assert "not measured: --probe measures it" in printed
    assert call("preflight", config, "--on", option[0], "--json") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "fits"


def test_a_recommendation_and_all_checks_are_added_to_the_json(
    config: Path, capsys: Output
) -> None:
    assert call("preflight", config, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert call("preflight", config, "--json", "--recommend", "--explain") == 0
    found = json.loads(capsys.readouterr().out)
    smallest = found["recommendation"]["smallest"]
    assert (smallest["cpus"], smallest["ram_bytes"], smallest["gpus"]) == (1, 2 << 30, 0)
    assert found["recommendation"]["cores"][0]["wall_s"] is None
    assert {check["outcome"] for check in found["checks"]} <= {"holds", "found", "does_not_apply"}
    assert set(found) - set(plain) == {"recommendation", "checks"}


def test_a_run_that_fits_no_machine_ends_with_3(config: Path, capsys: Output) -> None:
    replay = "algorithm={name: dqn, replay: {capacity: 10_000_000_000}}"
    whole = "env.observation={size: full, colour: rgb}"
    words = ["total_timesteps=20_000_000_000", replay, whole]
    assert call("preflight", config, *words, "--recommend") == 3
    assert "NO MACHINE has so much RAM" in capsys.readouterr().out


def test_every_check_is_listed_under_the_report(config: Path, capsys: Output) -> None:
    assert call("preflight", config, "--explain") == 0
    printed = capsys.readouterr().out
    assert "RAM" in printed
    assert re.search(r"^holds +ram_short +", printed, re.MULTILINE)
    assert re.search(r"^does not apply +gpu_missing +", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--hours", "3"], "--hours is for --recommend: add it"),
        (["--hours", "3", "--recommend"], "add --probe, which measures it"),
        (["--hours", "3", "--recommend", "--probe", "--on", "small"], "leave one out"),
        (["--hours", "soon", "--recommend"], "'soon' is not a number of hours"),
        (["--recommend", "--on", "huge"], "not one of small, medium, large"),
    ],
)
def test_a_question_that_cannot_be_answered_says_what_to_change(
    arguments: list[str], told: str, config: Path, capsys: Output
) -> None:
    assert call("preflight", config, *arguments) == 2
    assert told in capsys.readouterr().err


def test_a_study_is_asked_about_by_its_arms(capsys: Output) -> None:
    for option in ("--recommend", "--explain"):
        assert call("preflight", "configs/study_ppo_pqn.yaml", option) == 2
        assert f"{option} is for runs and experiments" in capsys.readouterr().err


@pytest.mark.slow
def test_the_cores_for_a_time_need_a_measurement(config: Path, capsys: Output) -> None:
    words = ["preflight", config, "--recommend", "--probe", "--hours", "1", "--json"]
    assert call(*words) == 0
    found = json.loads(capsys.readouterr().out)["recommendation"]
    assert found["cpus_in_time"] == 1
    assert [row["is_measured"] for row in found["cores"]].count(True) == 1
    assert all(row["wall_s"] > 0 for row in found["cores"])


def test_tuning_a_run_prints_what_was_tried(config: Path, capsys: Output) -> None:
    assert call("tune", "--config", config, "--seconds", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("timesteps/s while collecting and over the whole run")
    assert lines[1].split()[:3] == ["n_envs", "workers", "n_steps"]
    assert any(re.match(r" +2 +1 +16 .*present", line) for line in lines)


@pytest.mark.slow
def test_ctrl_c_prints_the_best_so_far_and_ends_with_130(config: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "game_rl", "tune", "--config", str(config), "--seconds", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stderr is not None
    for _ in range(3):  # an update and the present setting are measured, and now another one
        process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    printed, errors = process.communicate(timeout=HANG_GUARD_S)
    assert process.returncode == 130
    assert "present" in printed
    assert "not tested" in printed
    assert errors == "interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "env.n_env=4"], "unknown key; did you mean n_envs?"),
        (["--set", "game=dule"], "did you mean duel"),
    ],
)
def test_a_mistake_in_what_is_tuned_ends_with_2(
    arguments: list[str], told: str, config: Path, capsys: Output
) -> None:
    assert call("tune", "--config", config, *arguments) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["--config", "run.yaml", "--seconds", "0"], ["--config", "x", "--seconds", "a"]],
)
def test_a_tuning_needs_a_config_and_a_time(arguments: list[str]) -> None:
    assert call("tune", *arguments) == 2


def test_a_run_that_fits_nowhere_is_not_tuned(config: Path, capsys: Output) -> None:
    assert call("tune", "--config", config, *TOO_LARGE) == 3
    printed = capsys.readouterr()
    assert "no number of envs makes the run fit this machine" in printed.err
    assert not printed.out


def test_an_exploration_that_is_not_there_is_a_finding_with_the_command_that_makes_it(
    config: Path, tmp_path: Path, capsys: Output
) -> None:
    folder = tmp_path / "not there"
    name = str(folder)
    values = {
        "env.pool.from": f"env.pool={{from: '{name}'}}",
        "env.rewards.progress.potential": (
            f"env.rewards={{progress: {{potential: '{name}', weight: 0.02}}}}"
        ),
    }
    command = f"--output '{folder}'"
    for key, value in values.items():
        assert call("preflight", "--config", config, "--set", value, "--json") == 3
        (finding,) = json.loads(capsys.readouterr().out)["findings"][:1]
        assert (finding["severity"], finding["key"]) == ("error", key)
        assert finding["message"].startswith(f"there is no folder {folder}; make it first with")
        assert "game-rl explore " in finding["message"]
        assert command in finding["message"]
        assert call("train", "--config", config, "--set", value, "-q") == 2
        assert command in capsys.readouterr().err
    folder.mkdir()
    in_pool, in_reward = values.values()
    assert call("preflight", "--config", config, "--set", in_pool) == 2
    assert "has neither explore.json nor checkpoints" in capsys.readouterr().err
    assert call("preflight", "--config", config, "--set", in_reward) == 2
    assert "is not the folder of an exploration" in capsys.readouterr().err
    away = ["--set", in_reward, "--on", "small", "--explain"]
    assert call("preflight", "--config", config, *away) == 0
    assert re.search(r"^holds +exploration_missing", capsys.readouterr().out, re.MULTILINE)
