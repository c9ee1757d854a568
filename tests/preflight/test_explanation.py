"""Every check says what it compared, and whether it found something."""

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from game_rl.preflight.facts import EpisodeLengths
from game_rl.preflight.footprint import Situation
from game_rl.preflight.preflight import CHECKS, explain
from game_rl.preflight.rendering import render_checks
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB

Make = Callable[..., Situation]
TWO_GPUS = (Gpu(4 * GIB, 3 * GIB), Gpu(2 * GIB, GIB))
CASES: dict[str, dict[str, Any]] = {
    "as usual": {},
    "short of all": {
        "env__observation": {"colour": "rgb"},
        "facts__four_shades": True,
        "machine__ram_available_bytes": GIB,
        "machine__disk_free_bytes": GIB,
    },
    "dqn on GPUs": {
        "algorithm": {"name": "dqn", "replay": {"capacity": 10_000_000, "device": "cuda:1"}},
        "device": "cuda",
        "facts__uses_gpu": True,
        "machine__gpus": TWO_GPUS,
    },
    "a GPU that is missing": {"device": "cuda:3", "facts__uses_gpu": True},
    "Lake": {"lake": {}, "facts__lake_bytes_per_timestep": 240.0},
    "Lake not measured": {"lake": {}},
    "large Lake": {"lake": {"capacity_transitions": 9_000_000}},
    "restarts": {
        "algorithm": {
            "name": "pqn",
            "exploration": {"restarts": [{"at": 500_000, "start": 0.5, "over": 100_000}]},
        },
    },
    "imitates": {"algorithm": {"name": "pqn", "learn_from": {"played": {"episodes": "a.json"}}}},
    "imitates and plays on": {
        "algorithm": {
            "name": "dqn",
            "learn_from": {"played": {"episodes": "a.json"}},
            "exploration": {"start": 0.1},
        },
    },
    "remembers": {"algorithm": {"memory": {}}},
    "remembers one screen": {"algorithm": {"memory": {}}, "env": {"frame_stack": 1}},
    "imitates with PPO": {"algorithm": {"learn_from": {"played": {"episodes": "a.json"}}}},
    "probe": {"probe": EpisodeLengths((10, 20, 30))},
    "learns from others": {
        "algorithm": {"name": "dqn", "learn_from": {"lakes": ["a"], "own_share": 0.05}}
    },
}


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_all_checks_are_listed_with_what_they_found(
    values: dict[str, Any], situation: Make
) -> None:
    case = situation(**values)
    results = explain(case)
    assert [result.name for result in results] == [find.__name__ for find in CHECKS]
    for result in results:
        assert result.comparison.text
        assert result.comparison.applies or result.finding is None
        assert result.to_json()["outcome"] == result.outcome
    console = Console(width=200, record=True, file=StringIO())
    console.print(render_checks(results))
    assert console.export_text().count("\n") >= len(CHECKS)


@pytest.mark.parametrize(
    ("name", "check_name", "outcome", "text"),
    [
        ("as usual", "ram_short", "holds", "32.0 GiB available"),
        ("short of all", "ram_short", "found", "1.00 GiB available"),
        ("short of all", "colour_of_four_shades", "found", "rgb"),
        ("as usual", "gpu_missing", "does_not_apply", "names no GPU"),
        ("a GPU that is missing", "gpu_missing", "found", "cuda:3 against 0 GPUs"),
        ("dqn on GPUs", "replay_vram_short", "found", "1.00 GiB free on cuda:1"),
        ("dqn on GPUs", "replay_is_never_full", "found", "10,000,000 timesteps against"),
        ("Lake", "lake_outgrows_disk", "holds", "a Lake of 229 MiB on"),
        ("Lake not measured", "lake_outgrows_disk", "does_not_apply", "--probe"),
        ("large Lake", "lake_is_never_full", "found", "9,000,000 timesteps against the 1,001,472"),
        ("restarts", "restart_without_effect", "holds", "1 restart against"),
        ("probe", "n_steps_is_no_episode_length", "found", "256, against 4 random episodes of 20"),
        ("imitates", "clone_is_not_played", "found", "100% random actions at first, against 50%"),
        ("imitates and plays on", "clone_is_not_played", "holds", "10% random actions"),
        ("imitates with PPO", "clone_is_not_played", "does_not_apply", "samples its own actions"),
        ("remembers", "stack_beside_memory", "found", "frame_stack 4 against 2"),
        ("remembers one screen", "stack_beside_memory", "holds", "frame_stack 1 against 2"),
        ("as usual", "stack_beside_memory", "does_not_apply", "no memory"),
        ("learns from others", "few_own_rows", "found", "5% of own play in a batch against 10%"),
    ],
)
def test_numbers_are_named(
    name: str, check_name: str, outcome: str, text: str, situation: Make
) -> None:
    results = {result.name: result for result in explain(situation(**CASES[name]))}
    assert results[check_name].outcome == outcome
    assert text in results[check_name].comparison.text
