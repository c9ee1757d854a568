import time
from dataclasses import asdict

from game_rl.games.definition import load_game
from game_rl.measure.timed_training import measure_speed
from tests.tiny_run import MakeConfig


def test_every_figure_is_measured_and_none_is_longer_than_the_probe(
    make_config: MakeConfig,
) -> None:
    config = make_config()
    started = time.perf_counter()
    measured = measure_speed(config, load_game(config.game), training_s=0.1)
    seconds = time.perf_counter() - started
    assert all(0 < figure < seconds for figure in asdict(measured).values())
