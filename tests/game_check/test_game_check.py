import json
from pathlib import Path

import pytest
from PIL import Image

from game_rl.errors import GameFileError, UsageError
from game_rl.game_check.game_check import (
    GameCheck,
    check_game,
)
from game_rl.game_check.recorded_episode import RecordedEpisode, read_recorded_episode
from game_rl.game_check.sheets import write_contact_sheet
from game_rl.games.definition import Game, load_game
from tests.emulator.roms import make_rom

DUEL_FILES = ("duel.gb", "duel.sym")


@pytest.fixture(scope="module")
def duel() -> Game:
    return load_game("duel")


@pytest.fixture(scope="module")
def check(duel: Game) -> GameCheck:
    return check_game(duel, seed=0, timesteps=1_200)


def changed_duel(folder: Path, replacements: dict[str, str]) -> Game:
    """The bundled game with lines of its game.yaml replaced, in a folder of its own."""
    source = load_game("duel").folder
    for name in DUEL_FILES:
        (folder / name).write_bytes((source / name).read_bytes())
    text = (source / "game.yaml").read_text(encoding="utf-8")
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "game.yaml").write_text(text, encoding="utf-8")
    return load_game(str(folder / "game.yaml"))


def test_the_bundled_game_is_played_and_measured(check: GameCheck, duel: Game) -> None:
    assert check.timesteps == 1_200
    assert check.episodes >= 3
    assert [(c.start_state, c.seeds, c.courses) for c in check.courses] == [
        (f"level_{n}", 20, 20) for n in (1, 2, 3)
    ]
    assert [v.name for v in check.variables] == [v.name for v in duel.variables]
    ranges = {v.name: (v.minimum, v.maximum) for v in check.variables}
    assert ranges["level"] == (1, 3)
    assert ranges["player_health"][0] < ranges["player_health"][1]
    sums = {t.name: t for t in check.reward_terms}
    assert sums["damage_taken"].total < 0 < sums["damage_taken"].times


def test_a_sound_game_has_no_warning_but_what_a_random_player_misses(check: GameCheck) -> None:
    missed = ("variables.player_rounds", "rewards.round_won", "rewards.fight_won")
    assert [w for w in check.warnings if not w.startswith(missed)] == []


def test_the_same_seed_gives_the_same_check(check: GameCheck, duel: Game) -> None:
    again = check_game(duel, seed=0, timesteps=1_200)
    assert (again.variables, again.reward_terms) == (check.variables, check.reward_terms)


def test_the_contact_sheet_shows_every_start_state_first(
    check: GameCheck, duel: Game, tmp_path: Path
) -> None:
    labels = [moment.label for moment in check.starts]
    assert labels == [f"start: {name}" for name in duel.definition.start_states]
    assert 1 <= len(check.moments) <= 8
    pictures = [*check.starts, *check.moments]
    path = tmp_path / "new" / "sheet.png"
    write_contact_sheet(pictures, path)
    with Image.open(path) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width == 4 * 168 + 8
        assert sheet.height == -(-len(pictures) // 4) * 168 + 8


def test_the_scripts_of_start_states_are_shown_step_by_step_and_what_they_share_once(
    check: GameCheck,
) -> None:
    labels = [moment.label for moment in check.scripts]
    assert labels[:6] == [
        *("level_1 60: wait", "level_1 90: wait", "level_1 94: start"),
        *("level_1 106: wait", "level_1 110: start", "level_1 139: wait"),
    ]
    assert labels[6:8] == ["level_2 110: right", "level_2 118: wait"]
    assert (check.scripts[5].screen == check.starts[0].screen).all()


def test_a_sheet_that_cannot_be_written_is_told(check: GameCheck, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_contact_sheet(check.starts, tmp_path)


def test_what_never_changes_and_never_pays_is_flagged(tmp_path: Path) -> None:
    game = changed_duel(
        tmp_path,
        {
            "variables:": "variables:\n  unused: {address: 0xDE00}",
            "rewards:": "rewards:\n  nothing: {variable: unused, on: increase}",
        },
    )
    warnings = check_game(game, seed=0, timesteps=100).warnings
    assert any(w.startswith("variables.unused: never changes") for w in warnings)
    assert any(w.startswith("rewards.nothing: earned nothing") for w in warnings)
    assert any(w.startswith("endings: no episode ended") for w in warnings)


@pytest.mark.slow
def test_start_states_that_are_no_good_are_flagged(tmp_path: Path) -> None:
    game = changed_duel(
        tmp_path,
        {
            "start_states:": "start_states:\n  black: {script: [{wait: 1}]}\n"
            "  logo: {script: [{wait: 3}]}",
            "endings:": "endings:\n  begun: {variable: player_health, at_least: 1}",
            "random_seed: rng_seed\n": "random_seed: null\n",
        },
    )
    warnings = check_game(game, seed=0, timesteps=20).warnings
    assert any(w.startswith("start_states.black: the screen is blank") for w in warnings)
    assert any(w.startswith("start_states.black: no action makes a diff") for w in warnings)
    assert any("logo: shows the same screen as black" in w for w in warnings)
    assert any(w.startswith("start_states.level_1: the ending begun holds") for w in warnings)


@pytest.mark.slow
def test_start_states_that_set_other_values_may_show_the_same_screen(tmp_path: Path) -> None:
    script = "{script: [{wait: 90}], write: {player_rounds: %d}}"
    states = f"start_states:\n  one: {script % 1}\n  two: {script % 2}\n  again: {script % 1}"
    warnings = check_game(changed_duel(tmp_path, {"start_states:": states}), seed=0, timesteps=20)
    same = [text for text in warnings.warnings if "the same screen" in text]
    assert same == ["start_states.again: shows the same screen as one; change one of the scripts"]


def test_a_recorded_episode_is_played_too(duel: Game, tmp_path: Path) -> None:
    path = tmp_path / "episode.json"
    path.write_text(
        json.dumps({"start_state": "level_2", "actions": ["right", "punch"] * 20}), encoding="utf-8"
    )
    recorded = read_recorded_episode(path, duel)
    assert recorded == RecordedEpisode(start_state="level_2", actions=("right", "punch") * 20)
    check = check_game(duel, seed=0, timesteps=30, recorded=recorded)
    assert check.timesteps == 70
    assert check.episodes == 4


def test_the_sums_of_a_recorded_episode_stand_apart_from_random_play(duel: Game) -> None:
    recorded = RecordedEpisode(start_state="level_1", actions=("right", "punch") * 40)
    alone = check_game(duel, seed=0, timesteps=60)
    both = check_game(duel, seed=0, timesteps=60, recorded=recorded)
    assert alone.recorded is None
    assert alone.at_random.reward_terms == alone.reward_terms
    assert both.at_random == alone.at_random
    assert both.recorded is not None
    assert both.recorded.timesteps == 80
    assert both.recorded.episodes == 1
    assert (both.timesteps, both.episodes) == (140, both.at_random.episodes + 1)
    parts = zip(both.at_random.reward_terms, both.recorded.reward_terms, strict=True)
    for term, (at_random, of_recorded) in zip(both.reward_terms, parts, strict=True):
        assert term.total == pytest.approx(at_random.total + of_recorded.total)
        assert term.times == at_random.times + of_recorded.times


@pytest.mark.slow
def test_a_recorded_episode_that_earns_something_else_now_is_told(duel: Game) -> None:
    recorded = RecordedEpisode(start_state="level_1", actions=("right", "punch") * 40)
    played = check_game(duel, seed=0, timesteps=60, recorded=recorded).recorded
    assert played is not None
    earned = sum(term.total for term in played.reward_terms)
    for reward, success, says in (
        (earned, False, ""),
        (earned + 1, False, f"earns {earned:g}, and earned {earned + 1:g}"),
        (earned, True, "it ends in no success"),
    ):
        other = recorded.model_copy(update={"reward": reward, "success": success})
        warnings = check_game(duel, seed=0, timesteps=60, recorded=other).warnings
        told = [text for text in warnings if "as it was recorded" in text]
        assert bool(told) == bool(says)
        assert all(says in text for text in told)


def test_a_recorded_episode_of_another_game_is_refused(duel: Game, tmp_path: Path) -> None:
    path = tmp_path / "episode.json"
    path.write_text(
        json.dumps({"start_state": "levl_2", "actions": ["right", "punsh", "fly"]}),
        encoding="utf-8",
    )
    with pytest.raises(GameFileError) as caught:
        read_recorded_episode(path, duel)
    for part in ("did you mean level_", "did you mean punch?", "there is no action fly"):
        assert part in str(caught.value)


def test_what_the_game_file_says_and_the_game_does_not_do_is_told(tmp_path: Path) -> None:
    (tmp_path / "game.gb").write_bytes(make_rom()[:16_384])
    (tmp_path / "game.yaml").write_text(
        """\
title: Counting
rom: {path: game.gb}
random_seed: seed
start_states: {beginning: {script: [{wait: 90}]}}
actions: {idle: [], a: [a]}
variables:
  counter: {address: 0xC000}
  score: {address: 0xC000, type: bcd, bytes: 1}
  seed: {address: 0xFF00}
rewards: {counted: {variable: counter, on: increase, weight: 1.0e+30}}
""",
        encoding="utf-8",
    )
    warnings = check_game(load_game(f"{tmp_path}/game.yaml"), seed=0, timesteps=50).warnings
    for told in (
        "rom.path: ",
        "random_seed: seed (0xFF00) does not keep",
        "variables.score: held 0x",
        "reward term counted has earned",
    ):
        assert sum(warning.startswith(told) for warning in warnings) == 1, told
