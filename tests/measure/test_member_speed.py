import os
from dataclasses import asdict

from game_rl.games.definition import load_game
from game_rl.measure.member_speed import measure_member_speed
from tests.tiny_run import MakeConfig


def test_a_member_is_measured_elsewhere_and_this_process_keeps_its_cores(
    make_config: MakeConfig,
) -> None:
    config = make_config()
    cores, environment = os.sched_getaffinity(0), dict(os.environ)
    measured = measure_member_speed(config, load_game(config.game), cpus=1, members_at_once=2)
    assert all(figure > 0 for figure in asdict(measured).values())
    assert os.sched_getaffinity(0) == cores
    assert dict(os.environ) == environment
