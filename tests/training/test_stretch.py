"""Stretches of a member are one run, and what they leave is what independent play finds."""

import json
import shutil
from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.loader import dump_config
from game_rl.errors import ExperimentError, Interrupted
from game_rl.events import Evaluating, Event
from game_rl.jobs.member_jobs import copy_run, play_checkpoint, run_stretch
from game_rl.jobs.results import StretchResult, read_stretch_result
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.run_dir import RunDir, write_atomic
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import quiet

ENDS = (64, 128, 192)


def member(make_config: MakeConfig, name: str, *overrides: str) -> Path:
    """A run directory with a config alone, as an experiment makes it."""
    config = make_config(name, "recording.episodes=0", "evaluation.episodes=3", *overrides)
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    write_atomic(run_dir.config, dump_config(config))
    return run_dir.root


def stretch(root: Path, until: int, seed: int = 5) -> StretchResult:
    return run_stretch(
        root,
        until=until,
        seed=seed,
        result=root.with_name(f"{root.name}-{until}.json"),
        stop=StopRequest(),
        listeners=[],
    )


def weights(root: Path, timesteps: int) -> str:
    manifest = RunDir(root).checkpoint(timesteps) / "manifest.json"
    return str(
        json.loads(manifest.read_text(encoding="utf-8"))["files"]["policy.safetensors"]["sha256"]
    )


@pytest.mark.slow
def test_stretches_with_other_games_in_each_are_the_run_in_one_go(make_config: MakeConfig) -> None:
    whole = make_config("whole", "recording.episodes=0")
    train(whole, command(quiet()))
    root = member(make_config, "member")
    for number, until in enumerate(ENDS):
        found = stretch(root, until, seed=number)
        assert found.timesteps == until
        assert found.weights_sha256 == weights(root, until)
    assert weights(root, 192) == weights(whole.run_dir, 192)


def test_the_result_is_what_the_checkpoint_plays_from_that_seed(make_config: MakeConfig) -> None:
    root = member(make_config, "member")
    played = stretch(root, 64, seed=11).played
    assert played is not None
    run = open_trained_run(root, "latest")
    again = evaluate_run(run, episodes=3, seed=11)
    assert run.deterministic == played.deterministic
    assert again.rewards == played.rewards
    assert again.successes == played.successes
    assert played.rewards != evaluate_run(run, episodes=3, seed=12).rewards


def test_the_newest_checkpoint_is_the_best_whatever_an_earlier_one_reached_in_other_games(
    make_config: MakeConfig,
) -> None:
    root = member(make_config, "member")
    for number, until in enumerate(ENDS):
        stretch(root, until, seed=number)
        best = Checkpoint(RunDir(root).checkpoint(until)).state.best
        assert best is not None
        assert (best.timesteps, best.seed) == (until, number)


def test_a_stretch_that_has_left_its_result_is_not_carried_out_again(
    make_config: MakeConfig,
) -> None:
    root = member(make_config, "member")
    first = stretch(root, 64)
    RunDir(root).config.unlink()
    assert stretch(root, 64) == first


def test_without_its_result_a_stretch_finds_the_same_again(make_config: MakeConfig) -> None:
    root = member(make_config, "member")
    first = stretch(root, 64)
    root.with_name("member-64.json").unlink()
    again = stretch(root, 64)
    measured = {"timesteps_per_s", "seconds", "ram_peak_bytes"}
    assert again.model_dump(exclude=measured) == first.model_dump(exclude=measured)


@pytest.mark.slow
def test_a_stop_while_episodes_are_played_changes_nothing(make_config: MakeConfig) -> None:
    whole, root = member(make_config, "whole"), member(make_config, "member")
    stop = StopRequest()

    def stop_there(event: Event) -> None:
        if isinstance(event, Evaluating):
            stop.ask(Interrupted("stopped"))

    with pytest.raises(Interrupted):
        run_stretch(
            root, until=64, seed=5, result=root / "x.json", stop=stop, listeners=[stop_there]
        )
    assert Checkpoint(RunDir(root).checkpoint(64)).state.evaluation_due
    for until in ENDS:
        one, other = stretch(whole, until), stretch(root, until)
        assert (one.weights_sha256, one.played) == (other.weights_sha256, other.played)
    assert not Checkpoint(RunDir(root).checkpoint(192)).state.evaluation_due
    assert RunDir(root).evaluations.read_text(encoding="utf-8") == RunDir(
        whole
    ).evaluations.read_text(encoding="utf-8")


def test_weights_that_are_not_finite_are_a_result(make_config: MakeConfig) -> None:
    root = member(make_config, "member", "algorithm.vf_coef=1e38")
    found = stretch(root, 64)
    assert (found.failure, found.checkpoint, found.played) == ("non_finite", None, None)
    assert "non-finite" in found.text


def test_a_result_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "03.json"
    assert read_stretch_result(path) is None
    path.write_text('{"timesteps": "many"}', encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"03\.json is not the result of a stretch"):
        read_stretch_result(path)


def test_a_copy_goes_on_from_its_parent_with_its_own_values(make_config: MakeConfig) -> None:
    root = member(make_config, "parent")
    stretch(root, 64)
    new = root.with_name("copy")
    values = {"seed": 77, "algorithm.learning_rate": {"start": 2e-3, "end": 1e-4}}
    for _ in range(2):  # the second time it is there already
        copy_run(root, at=64, to=new, values=values)
    assert weights(new, 64) == weights(root, 64)
    old, state = (Checkpoint(RunDir(r).checkpoint(64)).state.config for r in (root, new))
    assert isinstance(old["algorithm"], dict)
    assert state["algorithm"] == old["algorithm"] | {
        "learning_rate": values["algorithm.learning_rate"]
    }
    assert state["seed"] == 77
    assert stretch(new, 128).weights_sha256 != stretch(root, 128).weights_sha256


@pytest.mark.slow
def test_a_copy_goes_on_where_its_parent_is_gone(make_config: MakeConfig) -> None:
    """A parent deletes old checkpoints while its copies train."""
    root = member(make_config, "parent")
    stretch(root, 64)
    for name in ("one", "two"):
        copy_run(root, at=64, to=root.with_name(name), values={"seed": 3})
    expected = stretch(root.with_name("one"), 128).weights_sha256
    shutil.rmtree(RunDir(root).checkpoints)
    (RunDir(root).checkpoints / "000000000128").mkdir(parents=True)
    assert stretch(root.with_name("two"), 128).weights_sha256 == expected
    shutil.rmtree(root)
    assert stretch(root.with_name("two"), 192).timesteps == 192


@pytest.mark.slow
def test_two_copies_with_the_same_seed_are_the_same_run(make_config: MakeConfig) -> None:
    root = member(make_config, "parent")
    stretch(root, 64)
    found = []
    for name in ("one", "two"):
        copy_run(root, at=64, to=root.with_name(name), values={"seed": 3})
        found.append(stretch(root.with_name(name), 128))
    assert found[0].weights_sha256 == found[1].weights_sha256
    assert found[0].played == found[1].played


def test_played_episodes_of_a_checkpoint_are_those_of_an_evaluation(
    make_config: MakeConfig,
) -> None:
    root = member(make_config, "member")
    stretch(root, 64)
    result = root / "validation" / "x.json"
    played = play_checkpoint(root, "64", episodes=4, seed=9, result=result)
    again = evaluate_run(open_trained_run(root, "64"), episodes=4, seed=9)
    assert played.rewards == again.rewards
    assert result.exists()
