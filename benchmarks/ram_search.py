"""Whether `game-rl find` finds the variables of duel, beacon and seasons, without their symbols.

    python -m benchmarks.ram_search [--games duel beacon seasons] [--only health] [--moments 8]
    python -m benchmarks.ram_search --time 200

Numbers that the screen shows are found by `--number` alone, from what a person says of them once.
All others are found from at most eight moments of play by the scripted players of the tests. What
is said at a moment is what a person sees: a number that can be counted (`3`), more or less than
before (`increased`), or which of several things it is (`is crab`). Moments are drawn from those in
which the variable differs. `random_seed` is found by `check-game --find-seed`, as nobody sees it.
The symbol file is only looked at for the rank: how many addresses are before the right one.

`--time N` searches N moments instead, in which little is known, and prints the seconds.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.game_check.game_check import find_seed
from game_rl.games.start_state import ScriptStep
from game_rl.games.variables import Variable
from game_rl.ram_search.moment_search import find_in_moments
from game_rl.ram_search.moments import KnownMoment, MomentsFile, PlayedMoments
from game_rl.ram_search.number_search import find_number
from game_rl.ram_search.ranking import KnownPlaces, RankedPlace
from game_rl.ram_search.searched_game import SearchedGame, searched_game
from game_rl.ram_search.shown_numbers import parse_statement
from tests.games import beacon_player, duel_player, seasons_player

_FRAME_SKIP = 4
_APART = 3  # moments of the pool between those of a pair, 36 frames
_EVERY = 3  # timesteps between two moments that may be drawn
_EPISODES = 2  # of each start state, the second one with random buttons
_SEED_S = 120


def _steps(first: int, last: int) -> tuple[ScriptStep, ...]:
    return (
        ScriptStep(wait=first),
        ScriptStep(hold=("start",), frames=4),
        ScriptStep(wait=last),
    )


SHOWN: Mapping[tuple[str, str], tuple[str, tuple[ScriptStep, ...]]] = {
    ("duel", "fight_timer"): ("90", ()),
    ("duel", "round_number"): (
        "row 5 column 12 is 1",
        (*_steps(90, 12), *_steps(1, 10)[1:]),
    ),
    ("duel", "level"): ("row 7 column 11 is 1", _steps(90, 12)),
    ("seasons", "apples"): ("row 16 column 17 is 00", ()),
    ("seasons", "level"): ("row 16 column 7 is 1", _steps(120, 12)),
}
"""What a person says once, and the start from power-on; none is the first start state."""

COUNTED = {"columns", "lives", "keys", "doors", "stomps", "player_rounds", "opponent_rounds"}
THINGS = {
    *("player_state", "player_phase", "opponent_state", "opponent_phase", "match_phase"),
    *("fight_result", "room", "part", "keys_taken", "doors_open", "item", "spikes_up", "result"),
    *("creature_1_kind", "creature_2_kind", "creature_3_kind", "on_ground"),
}
"""Of what else a person sees which of several it is; of all others, whether it is more or less."""


@dataclass(frozen=True)
class Pool:
    """Moments of play that may be drawn.

    Attributes:
        episodes: the number of the episode of each.
        values: of each variable, one a moment.
    """

    episodes: NDArray[np.int64]

    snapshots: NDArray[np.uint8]
    states: tuple[bytes, ...]
    values: Mapping[str, NDArray[np.int64]]


def _actions_of(game: str, start: str, *, is_random: bool) -> list[str]:
    """Return what a player of the tests does from a start state, with its own random numbers."""
    played: list[str] = []

    def recording(player: Callable[..., str]) -> Callable[..., str]:
        def play(*arguments: Any) -> str:  # noqa: ANN401 - those of any player
            played.append(player(*arguments))
            return played[-1]

        return play

    if game == "duel":
        with closing(duel_player.Duel()) as duel:
            level = int(start[-1])
            duel.load(duel_player.start_state(level), 0)
            player = duel_player.random_player if is_random else duel_player.sensible_player
            duel_player.fight(duel, recording(player), level, _SEEDS[game])
    elif game == "beacon":
        with closing(beacon_player.Beacon()) as beacon:
            one = beacon_player.random_player if is_random else beacon_player.ScriptedPlayer(start)
            beacon_player.episode(beacon, recording(one), start, _SEEDS[game])
    else:
        with closing(seasons_player.Seasons()) as seasons:
            other = seasons_player.random_player if is_random else seasons_player.scripted_player
            seasons_player.episode(seasons, recording(other), start, _SEEDS[game])
    return played


_SEEDS = {"duel": 77, "beacon": 77, "seasons": 77}
"""Of the random numbers of each game."""


def pool_of(searched: SearchedGame) -> Pool:
    """Play, and keep what is seen at every third timestep, and some time after the end."""
    game = searched.game
    assert game is not None
    snapshots = []
    states = []
    episodes = []
    values: dict[str, list[int]] = {}
    variables = [each for each in game.variables if isinstance(each, Variable)]
    with searched.emulator() as emulator:
        power_on = emulator.save_state()
        seed = next(each for each in variables if each.name == game.definition.random_seed)
        for start in searched.start_states:
            for episode in range(_EPISODES):
                actions = _actions_of(game.name, start, is_random=episode % 2 == 1)
                searched.bring_to_start(emulator, power_on, start)
                seed.write(emulator, _SEEDS[game.name])
                for number, action in enumerate((*actions, *["idle"] * 20)):
                    if number % _EVERY == 0:
                        snapshots.append(searched.ram.read(emulator))
                        states.append(emulator.save_state())
                        episodes.append(len(snapshots) - number // _EVERY)
                        for variable in variables:
                            values.setdefault(variable.name, []).append(variable.read(emulator))
                    emulator.hold(game.definition.actions[action])  # type: ignore[arg-type]
                    emulator.tick(_FRAME_SKIP, render=False)
    arrays = {name: np.array(found) for name, found in values.items()}
    return Pool(np.array(episodes), np.array(snapshots), tuple(states), arrays)


def drawn_moments(
    pool: Pool, name: str, n_moments: int, rng: np.random.Generator
) -> tuple[list[int], list[KnownMoment]]:
    """Draw moments of the pool and say what a person sees there."""
    values = pool.values[name]
    chosen: list[int] = []
    if name in COUNTED or name in THINGS:
        kinds = [np.flatnonzero(values == value) for value in np.unique(values)]
        kinds = [kinds[i] for i in rng.permutation(len(kinds))]
        while len(chosen) < n_moments:
            of_kind = kinds[len(chosen) % len(kinds)]
            chosen.append(int(rng.choice(of_kind)))
        chosen = sorted(set(chosen))
    else:
        chosen = _pairs(pool, values, n_moments, rng)
    moments = []
    before: int | None = None
    for index in chosen:
        value = int(values[index])
        known: dict[str, int | str] = {}
        if name in COUNTED:
            known[name] = value
        elif name in THINGS:
            known[name] = f"is v{value}".replace("-", "minus ")
        elif before is not None:
            change = (value > before) - (value < before)
            known[name] = {1: "increased", -1: "decreased", 0: "unchanged"}[change]
        before = value
        moments.append(KnownMoment(known=known))
    return chosen, moments


def _pairs(
    pool: Pool, values: NDArray[np.int64], n_moments: int, rng: np.random.Generator
) -> list[int]:
    """Return pairs of moments shortly after each other: it rises, falls, rises and so on."""
    found: list[int] = []
    is_together = pool.episodes[:-_APART] == pool.episodes[_APART:]
    steps = (values[_APART:] - values[:-_APART]) * is_together
    for number in range(n_moments // 2):
        way = steps if number % 2 == 0 else -steps
        clear = np.flatnonzero(
            way >= max(1, np.quantile(way[way > 0], 0.5) if (way > 0).any() else 1)
        )
        if not len(clear):
            clear = np.flatnonzero(steps)
        first = int(rng.choice(clear))
        found += [first, first + _APART]
    return found


def rank_of(places: Sequence[RankedPlace], right: Variable) -> int | None:
    """Return how many addresses are ranked up to the right one; None if it is not found."""
    for rank, place in enumerate(places, start=1):
        if place.address == right.address:
            return rank
    return None


def rows_of(game: str, only: Sequence[str], n_moments: int) -> Iterator[tuple[str, ...]]:
    searched = searched_game(game)
    loaded = searched.game
    assert loaded is not None
    variables = {v.name: v for v in loaded.variables if isinstance(v, Variable)}
    pool = None
    for name, right in variables.items():
        if only and name not in only:
            continue
        begun = time.monotonic()
        if (game, name) in SHOWN:
            text, start = SHOWN[game, name]
            at = searched_game(game, start=start, from_power_on=bool(start))
            found = find_number(at, parse_statement(text), KnownPlaces())
            places: Sequence[RankedPlace] = found.places
            how = f'--number "{text}"'
            n_places = len(places)
        elif name == loaded.definition.random_seed:
            seeds = find_seed(loaded, limit_s=_SEED_S, progress=lambda _done, _total: None)
            addresses = [each.address for each in seeds.candidates]
            rank = addresses.index(right.address) + 1 if right.address in addresses else 0
            seconds = f"{time.monotonic() - begun:.1f}"
            yield (
                game,
                name,
                str(rank or "-"),
                str(len(addresses)),
                "check-game --find-seed",
                seconds,
            )
            continue
        else:
            pool = pool or pool_of(searched)
            begun = time.monotonic()
            rng = np.random.default_rng(0)
            chosen, moments = drawn_moments(pool, name, n_moments, rng)
            played = PlayedMoments(
                pool.snapshots[chosen], tuple(pool.states[i] for i in chosen), {}
            )
            file = MomentsFile(moments=tuple(moments))
            result = find_in_moments(
                searched, file, searched.folder, name, KnownPlaces(), played=played
            )
            places = result.places
            how = f"{len(moments)} moments"
            n_places = result.n_places
        rank = rank_of(places, right) or 0
        kind = places[rank - 1].candidate.encoding.name if rank else ""
        seconds = f"{time.monotonic() - begun:.1f}"
        yield game, name, str(rank or "-"), str(n_places), f"{how} {kind}", seconds


def time_search(n_moments: int) -> None:
    """Search as many moments of a game in colour, of which little is known."""
    searched = searched_game("seasons")
    pool = pool_of(searched)
    rng = np.random.default_rng(0)
    chosen = sorted(rng.choice(len(pool.states), size=n_moments, replace=False).tolist())
    values = pool.values["runner_x"][chosen]
    known: list[dict[str, int | str]] = [{}]
    known += [{"runner_x": _changed(step)} for step in np.diff(values)]
    file = MomentsFile(moments=tuple(KnownMoment(known=each) for each in known))
    played = PlayedMoments(pool.snapshots[chosen], tuple(pool.states[i] for i in chosen), {})
    begun = time.monotonic()
    found = find_in_moments(
        searched, file, searched.folder, "runner_x", KnownPlaces(), played=played
    )
    seconds = time.monotonic() - begun
    print(
        f"{n_moments} moments of {searched.ram.n_bytes:,} bytes: {seconds:.1f} s, "
        f"{found.n_places} places left"
    )


def _changed(step: int) -> str:
    return "changed" if step else "unchanged"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", nargs="+", default=list(_SEEDS), choices=list(_SEEDS))
    parser.add_argument("--only", nargs="+", default=[], metavar="VARIABLE")
    parser.add_argument("--moments", type=int, default=8, metavar="N")
    parser.add_argument("--time", type=int, metavar="MOMENTS")
    arguments = parser.parse_args()
    if arguments.time is not None:
        time_search(arguments.time)
        return
    print(f"{'game':<8} {'variable':<16} {'rank':>4} {'places':>7}  {'found by':<40} {'s':>6}")
    ranks: list[str] = []
    for game in arguments.games:
        for row in rows_of(game, arguments.only, arguments.moments):
            game_name, name, rank, n_places, how, seconds = row
            print(
                f"{game_name:<8} {name:<16} {rank:>4} {n_places:>7}  {how:<40} {seconds:>6}",
                flush=True,
            )
            ranks.append(rank)
    first_three = sum(rank in ("1", "2", "3") for rank in ranks)
    print(f"{len(ranks)} variables: {ranks.count('1')} first, {first_three} among the first three")


if __name__ == "__main__":
    main()
