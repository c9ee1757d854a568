"""Random numbers are found in games of which it is known where they are."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.game_check import game_check
from game_rl.game_check.env_checks import StartCourses
from game_rl.game_check.game_check import find_seed
from game_rl.game_check.seed_search import SeedCandidate, SeedSearch, SeedsFound
from game_rl.games.definition import load_game
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import fake_env, fake_game

RANDOM, TIMER, COUNTER = 0xC020, 0xC024, 0xC026


class DicingEmulator(FakeEmulator):
    """Every fourth frame, a generator's byte decides where the player is pushed.

    A timer makes another push each time that it has run down, and a counter makes none.
    """

    def _advance(self) -> None:
        super()._advance()
        memory = self._memory
        memory[COUNTER] = memory[COUNTER] + 1 & 0xFF
        memory[TIMER] = memory[TIMER] - 1 & 0x3F
        if memory[TIMER] == 0:
            memory[fake.X] = min(149, memory[fake.X] + 1)
        if memory[fake.FRAME_COUNT] % 4 == 0:
            memory[RANDOM] = memory[RANDOM] * 141 + 57 & 0xFF
            memory[fake.X] = (memory[fake.X] + (memory[RANDOM] >> 6)) % 140


def test_a_byte_of_random_numbers_is_found_among_counters_timers_and_positions() -> None:
    game = fake_game(random_seed=None, actions={"idle": [], "left": ["left"]})
    told: list[tuple[int, int]] = []
    with closing(fake_env(game, emulator=DicingEmulator(), frame_skip=8)) as env:
        found = SeedSearch(env, ["level_1"]).run(
            limit_s=60, progress=lambda done, total: told.append((done, total))
        )
    best, *others = found.candidates
    assert (best.address, best.type, best.is_likely) == (RANDOM, "u8", True)
    assert best.found.courses >= 15  # 20 values of a byte, of which some may be the same
    assert not any(each.is_likely for each in others)
    assert (found.is_cut_off, told[0]) == (False, (0, 8_319))


def test_a_search_ends_when_its_time_is_up() -> None:
    game = fake_game(random_seed=None)
    with closing(fake_env(game, frame_skip=40)) as env:
        found = SeedSearch(env, ["level_1"]).run(limit_s=0.0, progress=lambda *_: None)
    assert (found.tried, found.is_cut_off, found.candidates) == (0, True, ())


@pytest.mark.slow
def test_the_random_numbers_of_a_bundled_game_are_found(tmp_path: Path) -> None:
    folder = shutil.copytree(load_game("duel").folder, tmp_path / "duel")
    text = (folder / "game.yaml").read_text(encoding="utf-8")
    without = text.replace("random_seed: rng_seed\n", "")
    assert without != text
    (folder / "game.yaml").write_text(without, encoding="utf-8")
    found = find_seed(
        load_game(str(folder)), limit_s=3_600, progress=lambda *_: None, only=["level_2"]
    )
    best = found.candidates[0]
    assert (best.address, best.type, best.is_likely) == (0xC19F, "u16", True)
    assert best.found.courses >= 10


def test_the_command_prints_the_lines_to_add_and_refuses_what_it_does_not_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    best = SeedCandidate(0xC19F, 2, 0.9, StartCourses("level_1", 20, 19, 600))
    found = SeedsFound((best,), tried=30, searched=8_319, seconds=4.0, is_cut_off=False)
    monkeypatch.setattr(game_check, "find_seed", lambda *_, **__: found)
    assert main(["check-game", "duel", "--find-seed"]) == 0
    told = capsys.readouterr().out
    assert "30 of 8,319 bytes were tried in 4 s" in told
    assert "    seed: {address: 0xC19F, type: u16}" in told
    assert main(["check-game", "duel", "--find-seed", "--timesteps", "5"]) == 2
    assert "--timesteps needs play, but --find-seed searches only" in capsys.readouterr().err
