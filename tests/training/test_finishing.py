"""Bringing a run to its end for a study, beside the parts done by hand."""

import pytest

from game_rl.callbacks.stop import StopRequest
from game_rl.config.loader import dump_config
from game_rl.errors import Interrupted
from game_rl.playback.evaluate import evaluate_run
from game_rl.playback.policy import open_trained_run
from game_rl.run_dir import RunDir
from game_rl.training.finishing import FinalTest, finish_run
from game_rl.training.train import Command, train
from tests.tiny_run import MakeConfig, make_config  # noqa: F401 - a fixture


@pytest.mark.parametrize("selection", ["best", "last"])
def test_a_run_is_trained_and_its_policy_plays_the_test(
    make_config: MakeConfig,  # noqa: F811
    selection: str,
) -> None:
    config = make_config("whole", "recording.episodes=0")
    train(config, Command(stop=StopRequest(), force=True))
    run = open_trained_run(config.run_dir, "best" if selection == "best" else "latest")
    expected = evaluate_run(run, episodes=3, seed=77)

    begun = make_config("begun", "recording.episodes=0")
    run_dir = RunDir(begun.run_dir)
    run_dir.root.mkdir()
    run_dir.config.write_text(dump_config(begun))
    result, stop = begun.run_dir.with_suffix(".json"), StopRequest()
    test = FinalTest(selection="best" if selection == "best" else "last", episodes=3, seed=77)
    stop.reason = Interrupted("stopped")
    with pytest.raises(Interrupted):
        finish_run(run_dir.root, test, result=result, stop=stop, listeners=[])
    assert not result.exists()
    found = finish_run(run_dir.root, test, result=result, stop=StopRequest(), listeners=[])
    assert found.timesteps == 192
    assert found.played is not None
    assert found.played.rewards == expected.rewards
    assert found.policy_timesteps == run.state.num_timesteps
    again = finish_run(run_dir.root, test, result=result, stop=StopRequest(), listeners=[])
    assert again == found
