"""The clips of a report, against the log of the run's episodes."""

import io
import shutil

import pytest
from PIL import Image, ImageSequence

from game_rl.episodes.logged_episodes import read_logged_episodes
from game_rl.viewer.report_clips import early_best_worst, still_of
from game_rl.viewer.run_report import run_report
from game_rl.viewer.shown_runs import ShownRun, read_run
from tests.tiny_run import MakeConfig, train_once
from tests.viewer.html_page import read_page


@pytest.fixture
def tiny(make_config: MakeConfig) -> ShownRun:
    return read_run(train_once(make_config("run")).root)


def test_they_are_the_first_episode_and_the_extremes_of_the_final_evaluation(
    tiny: ShownRun,
) -> None:
    logged = list(read_logged_episodes(tiny.run_dir))
    first = next(episode for episode in logged if episode.kind == "training")
    rewards = [episode.reward for episode in logged if episode.kind == "final"]
    early, best, worst = early_best_worst(tiny)
    assert f"reward {first.reward:.2f}" in early.about
    assert f"reward {max(rewards):.2f}" in best.about
    assert f"reward {min(rewards):.2f}" in worst.about
    for clip in (early, best, worst):
        still = Image.open(io.BytesIO(still_of(clip.gif, ".gif"))).convert("RGB")
        *_, last = ImageSequence.all_frames(Image.open(io.BytesIO(clip.gif)))
        assert still.tobytes() == last.convert("RGB").tobytes()
    text = read_page(run_report(tiny, clips=(early, best, worst))).text
    places = [text.index(word) for word in ("Early", "Best", "Worst", "Success rate")]
    assert places == sorted(places)
    assert "No clip was recorded" not in text


def test_a_run_without_logged_episodes_has_none(tiny: ShownRun) -> None:
    shutil.rmtree(tiny.run_dir.episodes)
    assert early_best_worst(tiny) == ()


def test_a_game_that_is_gone_is_named_in_their_place(tiny: ShownRun) -> None:
    gone = tiny.config.model_copy(update={"game": "elsewhere/game.yaml"})
    object.__setattr__(tiny, "config", gone)
    (clip,) = early_best_worst(tiny)
    assert not clip.gif
    assert "elsewhere/game.yaml" in clip.why_not
    text = read_page(run_report(tiny, clips=(clip,))).text
    assert "elsewhere/game.yaml" in text
    assert "No clip was recorded" in text
