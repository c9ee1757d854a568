"""Lakes of another game, or seen and played another way, are refused with both values."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.config.learn_from import LearnFromConfig
from game_rl.config.schema import EnvConfig, RunConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.errors import LakeError
from game_rl.games.definition import Game, load_game
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.origin import LakeRows, check_agreement, origin_of, write_origin
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import Play


def run_config(**env: Any) -> RunConfig:
    return RunConfig(
        game="duel", total_timesteps=100_000, run_dir=Path("runs/x"), env=EnvConfig(**env)
    )


def schema_of(config: RunConfig, game: Game) -> LakeSchema:
    observation_format = make_observation_format(config.env, game)
    return LakeSchema.of(observation_format, n_actions=len(game.action_names))


def written(path: Path, config: RunConfig, game: Game, *, stream: str = "a") -> Lake:
    """As a run of `config` on `game` leaves it."""
    lake = Lake.create(path, schema_of(config, game))
    with LakeWriter(lake, stream, n_envs=1) as writer:
        Play(lake.schema, np.random.default_rng(0)).steps(writer, 3)
    write_origin(path, stream, origin_of(config, game))
    return lake


def checked(
    path: Path, config: RunConfig, game: Game, **settings: Any
) -> tuple[LakeRows, list[str]]:
    told: list[str] = []
    learn_from = LearnFromConfig(lakes=(path,), **settings)
    rows = check_agreement(learn_from, schema_of(config, game), config, game, told.append)
    return rows, told


def with_definition(game: Game, **changes: Any) -> Game:
    return replace(game, definition=game.definition.model_copy(update=changes))


def test_a_lake_of_the_same_game_played_alike_agrees(tmp_path: Path) -> None:
    game, config = load_game("duel"), run_config()
    written(tmp_path, config, game)
    other = run_config(n_envs=2, start_states=("level_1",), max_episode_timesteps=50)
    assert checked(tmp_path, other, game) == (LakeRows(transitions=3, blocks=1), [])


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({"frame_stack": 3}, r"frame_stack: 3 there, 4 in this run"),
        ({"observation": {"size": "full"}}, r"packing.shape: \(1, 144, 160\) there, \(1, 72, 80\)"),
        ({"frame_skip": 6}, r"stream a: env.frame_skip: 6 there, 4 in this run"),
    ],
)
def test_what_was_seen_or_played_another_way_is_named_with_both_values(
    tmp_path: Path, theirs: dict[str, Any], told: str
) -> None:
    game = load_game("duel")
    written(tmp_path, run_config(**theirs), game)
    with pytest.raises(LakeError, match=told):
        checked(tmp_path, run_config(), game)


def test_another_rom_actions_rewards_and_endings_are_named(tmp_path: Path) -> None:
    game, config = load_game("duel"), run_config()
    definition = game.definition
    rewards = dict(list(definition.rewards.items())[1:])
    actions = dict(reversed(definition.actions.items()))
    changed = {
        "the ROM's sha256": replace(game, rom=replace(game.rom, sha256="0" * 64)),
        "the game's actions": with_definition(game, actions=actions),
        "the game's rewards": with_definition(game, rewards=rewards),
        "the game's endings": with_definition(game, endings={}),
    }
    for number, (name, theirs) in enumerate(changed.items()):
        path = tmp_path / str(number)
        written(path, config, theirs)
        with pytest.raises(LakeError, match=f"{name}: .* there, .* in this run"):
            checked(path, config, game)


def test_values_that_a_start_state_holds_are_part_of_how_a_lake_was_played(tmp_path: Path) -> None:
    game, config = load_game("duel"), run_config()
    states = dict(game.definition.start_states)
    held = states["level_1"].model_copy(update={"hold_values": {"health": 9}})
    holding = with_definition(game, start_states=states | {"level_1": held})
    assert origin_of(run_config(start_states=("level_2",)), holding) == origin_of(config, game)
    written(tmp_path, config, holding)
    with pytest.raises(LakeError, match=r"the game's hold_values: \[\{'health': 9\}, \{\}\] there"):
        checked(tmp_path, config, game)
    checked(tmp_path, config, holding)


def test_sticky_actions_are_part_of_how_a_lake_was_played(tmp_path: Path) -> None:
    game, plain, sticky = load_game("duel"), run_config(), run_config(sticky_actions=0.25)
    assert "env.sticky_actions" not in origin_of(plain, game), "as in origins of earlier versions"
    written(tmp_path, sticky, game)
    checked(tmp_path, sticky, game)
    with pytest.raises(LakeError, match=r"env\.sticky_actions: 0\.25 there, 0\.0 in this run"):
        checked(tmp_path, plain, game)
    written(tmp_path, plain, game, stream="b")
    with pytest.raises(LakeError, match=r"b: env\.sticky_actions: 0\.0 there, 0\.25 in this run"):
        checked(tmp_path, sticky, game, agents={"b": 1.0})


def test_a_stream_that_is_not_drawn_from_may_be_of_another_game(tmp_path: Path) -> None:
    game = load_game("duel")
    written(tmp_path, run_config(), game)
    written(tmp_path, run_config(frame_skip=6), game, stream="b")
    with pytest.raises(LakeError, match=r"stream b: env\.frame_skip"):
        checked(tmp_path, run_config(), game)
    checked(tmp_path, run_config(), game, agents={"a": 1.0})
    checked(tmp_path, run_config(), game, agents={"a": 1.0, "b": 0.0})


def test_a_stream_of_which_nothing_is_written_down_is_told(tmp_path: Path) -> None:
    game, config = load_game("duel"), run_config()
    written(tmp_path, config, game)
    (tmp_path / "origins" / "a.json").unlink()
    _, told = checked(tmp_path, config, game)
    assert len(told) == 1
    assert "no record of how the stream a was played" in told[0]


def test_a_missing_and_an_empty_lake_are_told(tmp_path: Path) -> None:
    game, config = load_game("duel"), run_config()
    with pytest.raises(LakeError, match=r"is not a Lake: it has no lake\.json"):
        checked(tmp_path / "none", config, game)
    Lake.create(tmp_path / "empty", schema_of(config, game))
    with pytest.raises(LakeError, match="no sealed transitions"):
        checked(tmp_path / "empty", config, game)
