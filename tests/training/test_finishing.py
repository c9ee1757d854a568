"""Bringing a run to its end for a study, beside the parts done by hand."""

from typing import Literal

import pytest

from game_rl.config.loader import dump_config
from game_rl.errors import Interrupted
from game_rl.jobs.member_jobs import FinalTest, finish_run
from game_rl.jobs.results import FinishedRun
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, train
from tests.tiny_run import MakeConfig, make_config  # noqa: F401 - a fixture


def finished(
    run_dir: RunDir, selection: Literal["best", "last"], stop: StopRequest | None = None
) -> FinishedRun:
    return finish_run(
        run_dir.root,
        FinalTest(selection=selection, episodes=3, seed=77),
        result=run_dir.root.with_name(f"{selection}.json"),
        stop=stop or StopRequest(),
        listeners=[],
    )


def test_a_run_that_was_stopped_is_trained_on_and_each_of_its_policies_plays_the_test(
    make_config: MakeConfig,  # noqa: F811
) -> None:
    whole = make_config("whole", "recording.episodes=0")
    train(whole, TrainCommand(stop=StopRequest(), force=True))

    config = make_config("begun", "recording.episodes=0")
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    run_dir.config.write_text(dump_config(config), encoding="utf-8")
    stop = StopRequest()
    stop.ask(Interrupted("stopped"))
    with pytest.raises(Interrupted):
        finished(run_dir, "best", stop)
    assert not run_dir.root.with_name("best.json").exists()

    for selection, checkpoint in (("best", "best"), ("last", "latest")):
        run = open_trained_run(whole.run_dir, checkpoint)
        expected = evaluate_run(run, episodes=3, seed=77)
        found = finished(run_dir, selection)
        assert found.played is not None
        assert found.played.rewards == expected.rewards
        assert found.played.deterministic == expected.deterministic
        assert (found.timesteps, found.policy_timesteps) == (192, run.state.num_timesteps)
        assert finished(run_dir, selection) == found  # its time, too: nothing was done
