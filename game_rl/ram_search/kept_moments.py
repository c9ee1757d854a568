"""The moments beside a game.yaml, which `game-rl check-game` plays again."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from game_rl.games.definition import Game
from game_rl.games.variables import Variable
from game_rl.ram_search.known_facts import KnownFact
from game_rl.ram_search.moments import (
    MOMENTS_FILE,
    MomentsFile,
    PlayedMoments,
    play_moments,
    read_moments,
)
from game_rl.ram_search.searched_game import game_with_its_start


@dataclass(frozen=True)
class RepeatedMoments:
    """What came of the moments that are kept beside a game.yaml.

    Attributes:
        moments, facts: how many were played, and how many facts were compared.
        disagreements: sentences, each about a variable at a moment.
        unknown: names of which something is known, and that are no variables of game.yaml.
    """

    moments: int
    facts: int
    disagreements: tuple[str, ...]
    unknown: tuple[str, ...]


def repeat_moments(game: Game) -> RepeatedMoments | None:
    """Play the moments beside game.yaml, and compare its variables; None if there are none.

    Raises:
        GameFileError: the file is wrong, or a moment cannot be played.
    """
    path = game.folder / MOMENTS_FILE
    if not path.is_file():
        return None
    searched = game_with_its_start(game)
    file = read_moments(path, searched)
    played = play_moments(file.moments, searched, game.folder)
    known = [name for name in file.names if name in played.variables]
    facts = {name: tuple(file.facts_of(name, played.variables)) for name in known}
    return RepeatedMoments(
        len(file.moments),
        sum(map(len, facts.values())),
        tuple(text for name in known for text in _against(game, file, name, facts[name], played)),
        tuple(name for name in file.names if name not in played.variables),
    )


def _against(
    game: Game,
    file: MomentsFile,
    name: str,
    facts: tuple[KnownFact, ...],
    played: PlayedMoments,
) -> Iterator[str]:
    values = played.variables[name]
    variable = next(each for each in game.variables if each.name == name)
    assert isinstance(variable, Variable)
    for fact in facts:
        now = np.array([values[fact.moment]])
        then = None if fact.before is None else np.array([values[fact.before]])
        if fact.fact.holds(now, then)[0]:
            continue
        was = (
            ""
            if fact.before is None
            else f", and was {values[fact.before]:,} at moment {fact.before + 1}"
        )
        yield (
            f"variables.{name} (0x{variable.address:04X}) is {values[fact.moment]:,} at moment "
            f"{fact.moment + 1} of {MOMENTS_FILE}{was}, but the file says "
            f"`{file.moments[fact.moment].known[name]}`; correct the variable (game-rl find "
            f"--moments {MOMENTS_FILE} --name {name} searches), or the moment"
        )
