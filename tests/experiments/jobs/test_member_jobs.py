"""What runs would do on the same observations, beside their policies asked one by one."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from gymnasium import spaces

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.loader import dump_config
from game_rl.errors import ExperimentError, Interrupted, LakeError
from game_rl.events import Evaluating, Event
from game_rl.experiments.jobs.job_files import (
    ActionDifferences,
    CompareActionsRequest,
    CopyRequest,
    FinishedRun,
    FinishRequest,
    PlayRequest,
    StretchRequest,
    StretchResult,
    read_result,
)
from game_rl.experiments.jobs.member_jobs import (
    compare_actions,
    copy_run,
    finish_run,
    play_checkpoint,
    run_stretch,
)
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import train
from tests.lake.plays import SCHEMA
from tests.tiny_run import MakeConfig, command, train_once
from tests.training.forks import KINDS, quiet

SHORT = ("total_timesteps=64", "recording.episodes=0", "evaluation.final_episodes=1")


def plain_actions(root: Path, timesteps: int, stacks: Sequence[torch.Tensor]) -> list[int]:
    """Of one observation after another, by the network's own outputs."""
    run = open_trained_run(root, str(timesteps))
    n_actions = spaces.Discrete(len(run.game.action_names))
    policy: Any = run.policy(spaces.Box(0, 255, tuple(stacks[0].shape), np.uint8), n_actions)
    policy.set_training_mode(False)
    found = []
    for stack in stacks:
        with torch.no_grad():
            if run.config.algorithm.name == "ppo":
                outputs = policy.get_distribution(stack[None]).distribution.logits
            else:
                outputs = policy.q_net(stack[None])
        found.append(int(outputs[0].argmax()))
    return found


def comparison(
    members: Path, asked: dict[str, int], *, lake: Path, result: Path, observations: int = 9
) -> CompareActionsRequest:
    return CompareActionsRequest(
        root=members,
        members=members,
        checkpoints=asked,
        lake=lake,
        observations=observations,
        seed=7,
        result=result,
    )


@pytest.mark.slow
def test_shares_are_those_of_policies_that_are_asked_one_by_one(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    for name, kind in {"00": "ppo", "01": "pqn", "02": "dqn"}.items():
        train(make_config(name, *KINDS[kind], *SHORT), command(quiet()))
    lake = RunDir(tmp_path / "01").lake
    asked, results = {"00": 64, "01": 64, "02": 64}, [tmp_path / "a.json", tmp_path / "b.json"]
    for result in results:
        compare_actions(comparison(tmp_path, asked, lake=lake, observations=40, result=result))
    found = read_result(ActionDifferences, results[0])
    assert results[0].read_bytes() == results[1].read_bytes()

    view = Lake.open(lake).view()
    rows = np.random.default_rng(7).integers(len(view), size=40)
    stacks = [torch.from_numpy(Sampler(view).take(np.array([row])).stacks[0]) for row in rows]
    actions = [plain_actions(tmp_path / name, 64, stacks) for name in asked]
    expected = [
        [sum(a != b for a, b in zip(one, other, strict=True)) / 40 for other in actions]
        for one in actions
    ]
    assert found.observations == 40
    assert found.runs == ("00", "01", "02")
    np.testing.assert_array_equal(found.shares, expected)
    assert np.max(expected) > 0


def test_means_are_over_pairs_and_a_pair_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "actions.json"
    path.write_text(
        '{"seed": 1, "observations": 10, "runs": ["a", "b", "c"],'
        ' "shares": [[0, 0.2, 0.4], [0.2, 0, 0.9], [0.4, 0.9, 0]]}',
        encoding="utf-8",
    )
    found = read_result(ActionDifferences, path)
    assert list(found.pairs()) == [("a", "b", 0.2), ("a", "c", 0.4), ("b", "c", 0.9)]
    assert found.among({"a", "b"}) == 0.2
    assert found.among({"a", "b", "c"}) == pytest.approx(0.5)
    assert found.among({"a"}) is None
    assert found.between("b", {"a", "c"}) == pytest.approx(0.55)
    assert found.between("b", set()) is None


def test_of_an_empty_lake_nothing_is_asked(tmp_path: Path) -> None:
    Lake.create(tmp_path / "lake", SCHEMA)
    result = tmp_path / "actions.json"
    asked = {"00": 1, "01": 1}
    found = compare_actions(comparison(tmp_path, asked, lake=tmp_path / "lake", result=result))
    assert (found.observations, found.shares) == (0, ())
    assert read_result(ActionDifferences, result) == found
    assert found.among({"00", "01"}) is None


def test_what_is_no_lake_and_no_result_is_said(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="is not a Lake"):
        compare_actions(comparison(tmp_path, {}, lake=tmp_path / "x", result=tmp_path / "r"))
    (tmp_path / "r").write_text("{}", encoding="utf-8")
    with pytest.raises(ExperimentError, match="delete it"):
        read_result(ActionDifferences, tmp_path / "r")


def finished(
    run_dir: RunDir, selection: Literal["best", "last"], stop: StopRequest | None = None
) -> FinishedRun:
    root = run_dir.root.parent
    request = FinishRequest(
        root=root,
        run=run_dir.root,
        selection=selection,
        episodes=3,
        seed=77,
        result=root / f"{selection}.json",
    )
    return finish_run(request, stop or StopRequest())


@pytest.mark.slow
def test_a_run_that_was_stopped_is_trained_on_and_each_of_its_policies_plays_the_test(
    make_config: MakeConfig,
) -> None:
    whole = make_config("whole", "recording.episodes=0")
    train_once(whole)

    config = make_config("begun", "recording.episodes=0")
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    run_dir.config.write_text(dump_config(config), encoding="utf-8")
    stop = StopRequest()
    stop.ask(Interrupted("stopped"))
    with pytest.raises(Interrupted):
        finished(run_dir, "best", stop)
    assert not run_dir.root.with_name("best.json").exists()

    selections: dict[Literal["best", "last"], str] = {"best": "best", "last": "latest"}
    for selection, checkpoint in selections.items():
        run = open_trained_run(whole.run_dir, checkpoint)
        expected = evaluate_run(run, episodes=3, seed=77)
        found = finished(run_dir, selection)
        assert found.played is not None
        assert found.played.rewards == expected.rewards
        assert found.played.deterministic == expected.deterministic
        assert (found.timesteps, found.policy_timesteps) == (192, run.state.num_timesteps)
        assert finished(run_dir, selection) == found  # its time, too: nothing was done


ENDS = (64, 128, 192)


def member(make_config: MakeConfig, name: str, *overrides: str) -> Path:
    """A run directory with a config alone, as an experiment makes it."""
    config = make_config(name, "recording.episodes=0", "evaluation.episodes=3", *overrides)
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    write_atomic(run_dir.config, dump_config(config))
    return run_dir.root


def stretch(root: Path, until: int, seed: int = 5) -> StretchResult:
    return run_stretch(stretch_request(root, until, seed), StopRequest())


def stretch_request(root: Path, until: int, seed: int = 5) -> StretchRequest:
    result = root.with_name(f"{root.name}-{until}.json")
    return StretchRequest(root=root.parent, run=root, until=until, seed=seed, result=result)


def copy(root: Path, to: Path, **values: object) -> None:
    copy_run(CopyRequest(root=root.parent, run=root, at=64, to=to, values=values))


def weights(root: Path, timesteps: int) -> str:
    manifest = RunDir(root).checkpoint(timesteps) / "manifest.json"
    return str(
        json.loads(manifest.read_text(encoding="utf-8"))["files"]["policy.safetensors"]["sha256"]
    )


@pytest.mark.slow
def test_stretches_with_other_games_in_each_are_the_run_in_one_go(make_config: MakeConfig) -> None:
    whole = make_config("whole", "recording.episodes=0")
    train_once(whole)
    root = member(make_config, "member")
    for number, until in enumerate(ENDS):
        found = stretch(root, until, seed=number)
        assert found.timesteps == until
        assert found.weights_sha256 == weights(root, until)
    assert weights(root, 192) == weights(whole.run_dir, 192)


@pytest.mark.slow
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


@pytest.mark.slow
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
        run_stretch(stretch_request(root, 64), stop, [stop_there])
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
    assert read_result(StretchResult, path) is None
    path.write_text('{"timesteps": "many"}', encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"03\.json is not the result of a stretch"):
        read_result(StretchResult, path)


@pytest.mark.slow
def test_a_copy_goes_on_from_its_parent_with_its_own_values(make_config: MakeConfig) -> None:
    root = member(make_config, "parent")
    stretch(root, 64)
    new = root.with_name("copy")
    values = {"seed": 77, "algorithm.learning_rate": {"start": 2e-3, "end": 1e-4}}
    for _ in range(2):  # the second time it is there already
        copy(root, new, **values)
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
        copy(root, root.with_name(name), seed=3)
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
        copy(root, root.with_name(name), seed=3)
        found.append(stretch(root.with_name(name), 128))
    assert found[0].weights_sha256 == found[1].weights_sha256
    assert found[0].played == found[1].played


def test_played_episodes_of_a_checkpoint_are_those_of_an_evaluation(
    make_config: MakeConfig,
) -> None:
    root = member(make_config, "member")
    stretch(root, 64)
    result = root / "validation" / "x.json"
    asked = PlayRequest(root=root, run=root, checkpoint=64, episodes=4, seed=9, result=result)
    played = play_checkpoint(asked)
    again = evaluate_run(open_trained_run(root, "64"), episodes=4, seed=9)
    assert played.rewards == again.rewards
    assert result.exists()
