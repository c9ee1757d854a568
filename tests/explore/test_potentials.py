"""The potentials of a run's reward terms: what is read from a folder, and what is wrong with it."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from game_rl import api
from game_rl.config.schema import EnvConfig
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import check_env_config, make_game_env
from game_rl.errors import CheckpointError, ConfigError, UsageError
from game_rl.explore.potentials import SavedPotentials, potentials_saved_with, with_potentials
from game_rl.files.durable_files import write_saved
from game_rl.files.run_dir import RunDir
from game_rl.games.cell import CoarseVariable
from game_rl.games.definition import Game, load_game
from tests.explore.made_archives import Steps, made_lines, write_made

GAME = load_game("beacon")
CELL = (CoarseVariable(variable="room"), CoarseVariable(variable="player_x", per=16))
# a corridor from the middle of the shore, room 21, to the right
CORRIDOR: Steps = {((21, column), (21, column + 1)): 2 for column in range(4, 9)}


def explored(root: Path, *, goal: int = 9, frame_skip: int = 8, rom: str | None = None) -> Path:
    _, lines = made_lines((21, 4), CORRIDOR, successes=[(21, goal)])
    return write_made(root, GAME, CELL, lines, frame_skip=frame_skip, rom_sha256=rom)


def env_with(folder: Path, *, weight: float = 0.25, frame_skip: int = 8) -> EnvConfig:
    return EnvConfig.model_validate({
        "frame_skip": frame_skip,
        "start_states": ["shore"],
        "max_idle_frames": 0,
        "rewards": {"progress": {"potential": folder, "weight": weight}},
    })  # fmt: skip


def column_of(env: GameBoyEnv) -> int:
    x = env.read_variables()["player_x"]
    assert isinstance(x, int)
    return x // 16


def walked(game: Game, env: EnvConfig, action: str, timesteps: int) -> tuple[float, list[int]]:
    """Return what `progress` earns, and the columns of cells that a walk comes through."""
    with closing(make_game_env(env, game)) as played:
        played.reset(seed=0)
        columns = [column_of(played)]
        for _ in range(timesteps):
            played.step(played.action_names.index(action))
            columns.append(column_of(played))
        return played.reward_terms["progress"], columns


@pytest.mark.parametrize(("frame_skip", "timesteps"), [(8, 6), (4, 12)])
def test_walking_towards_the_goal_earns_the_weight_for_each_timestep_of_the_way(
    tmp_path: Path, frame_skip: int, timesteps: int
) -> None:
    env = env_with(explored(tmp_path / "x"), frame_skip=frame_skip)
    earned, columns = walked(with_potentials(GAME, env), env, "right", timesteps)
    gone = columns[-1] - columns[0]
    assert gone > 1
    assert earned == 0.25 * 2 * gone * 8 / frame_skip


def test_a_game_file_names_the_folder_beside_it(tmp_path: Path) -> None:
    shutil.copytree(GAME.folder, tmp_path / "game")
    file = tmp_path / "game" / "game.yaml"
    text = file.read_text(encoding="utf-8")
    term = "progress: {potential: ../explored, weight: 0.25}"
    file.write_text(text.replace("\nrewards:\n", f"\nrewards:\n  {term}\n"), encoding="utf-8")
    explored(tmp_path / "explored")
    game = load_game(str(file))
    env = env_with(tmp_path).model_copy(update={"rewards": {}})
    here = walked(with_potentials(game, env), env, "right", 6)
    added = env_with(tmp_path / "explored")
    assert here == walked(with_potentials(GAME, added), added, "right", 6)
    assert list(game.without_potentials().definition.rewards) == list(GAME.definition.rewards)


def test_what_is_saved_is_taken_before_the_folder_unless_it_is_of_another(tmp_path: Path) -> None:
    folder = explored(tmp_path / "x")
    env = env_with(folder)
    before = with_potentials(GAME, env).potentials["progress"]
    saved = [SavedPotentials(terms={"progress": before.saved()})]
    explored(folder, goal=5)
    assert with_potentials(GAME, env, saved).potentials["progress"] == before
    assert with_potentials(GAME, env).potentials["progress"].to_go == {(21, 5): 0, (21, 4): 2}
    other = env_with(explored(tmp_path / "y", goal=6))
    assert with_potentials(GAME, other, saved).potentials["progress"].to_go[21, 4] == 4
    shutil.rmtree(folder)
    assert with_potentials(GAME, env, saved).potentials["progress"] == before


def test_a_damaged_file_of_a_run_is_named(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    assert potentials_saved_with(run_dir) == []
    run_dir.potentials.write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"potentials\.json cannot be read.*delete it"):
        potentials_saved_with(run_dir)
    env = env_with(explored(tmp_path / "x"))
    whole = with_potentials(GAME, env).potentials["progress"].saved()
    part = whole.model_copy(update={"to_go": whole.to_go[:5]})
    write_saved(run_dir.potentials, SavedPotentials(terms={"progress": part}))
    with pytest.raises(CheckpointError, match=r"reward term progress.*cannot be read"):
        with_potentials(GAME, env, potentials_saved_with(run_dir))


def test_what_is_wrong_with_the_folder_is_told_with_a_way_out(tmp_path: Path) -> None:
    def refused(folder: Path, says: str) -> None:
        with pytest.raises(UsageError, match=rf"^reward term progress: .*{says}"):
            with_potentials(GAME, env_with(folder))

    refused(tmp_path / "none", r"no folder .*game-rl explore GAME --output .*none")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"not the folder of an exploration")
    refused(explored(tmp_path / "rom", rom="0" * 64), r"explored another ROM, 000000000000")
    refused(explored(tmp_path / "never", goal=99), r"of its 6 cells none is a success.*--resume")
    _, lines = made_lines((1,), {}, successes=[(1,)])
    refused(write_made(tmp_path / "screens", GAME, (), lines), r"cells .* are pictures")
    other = (CoarseVariable(variable="rooom"),)
    refused(write_made(tmp_path / "other", GAME, other, lines), r"rooom; did you mean room\?")
    gone = explored(tmp_path / "gone")
    (gone / "archive.jsonl").unlink()
    refused(gone, r"has no archive\.jsonl; continue it with")


def test_a_name_that_the_game_has_is_refused(tmp_path: Path) -> None:
    rewards = {"key": {"potential": tmp_path, "weight": 1}}
    env = EnvConfig.model_validate({"rewards": rewards})
    with pytest.raises(ConfigError, match=r"env\.rewards\.key: beacon has a reward term"):
        check_env_config(env, GAME)


def test_an_env_of_the_api_reads_the_folder(tmp_path: Path) -> None:
    explored(tmp_path / "x")
    config = tmp_path / "run.yaml"
    config.write_text(
        f"game: beacon\ntotal_timesteps: 65_536\nrun_dir: {tmp_path / 'run'}\n"
        f"env: {{rewards: {{progress: {{potential: {tmp_path / 'x'}, weight: 0.5}}}}}}\n",
        encoding="utf-8",
    )
    with closing(api.make_env(config)) as env:
        env.reset(seed=0)
        assert "progress" in env.unwrapped.reward_terms  # type: ignore[attr-defined]
