"""`game-rl check-game --without-rom`: what a game.yaml says, and which files it still needs."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from game_rl.emulator.rom_search import hashes_text, search_rom
from game_rl.games.actions import least_frame_skip
from game_rl.games.custom_reward import ACTION, MEMORY, SCREEN_ARGUMENT
from game_rl.games.definition import Game, load_game
from game_rl.games.parts.episode_parts import custom_part_names, part_formats


@dataclass(frozen=True)
class NeededRom:
    """The ROM of a game file.

    Attributes:
        hashes: its digests by algorithm.
        path: where it is; None if it is missing.
        looked_in: where it was looked for, as a person may read it.
    """

    hashes: dict[str, str]
    path: str | None
    looked_in: tuple[str, ...]

    @property
    def text(self) -> str:
        """Which ROM it is, and where it was looked for."""
        which = f" with {hashes_text(self.hashes)}" if self.hashes else ""
        return f"the ROM{which}, which was looked for in {', '.join(self.looked_in)}"


@dataclass(frozen=True)
class PartSize:
    """The shape of a part of observations at one timestep, and its stored bytes."""

    name: str
    kind: str
    shape: tuple[int, ...]
    stored_bytes: int


@dataclass(frozen=True)
class GameFileCheck:
    """What a valid game file says.

    Attributes:
        least_frame_skip: fewest frames of a timestep into which every action fits.
        missing_files: files of start states that are not there, by their keys.
    """

    title: str
    rom: NeededRom
    missing_files: dict[str, str]
    variables: tuple[str, ...]
    actions: tuple[str, ...]
    rewards: tuple[str, ...]
    reward_class: str | None
    endings: tuple[str, ...]
    start_states: tuple[str, ...]
    parts: tuple[PartSize, ...]
    least_frame_skip: int

    @property
    def missing(self) -> tuple[str, ...]:
        """What has to be added before the game can be played, as sentences."""
        rom = (self.rom.text,) if self.rom.path is None else ()
        return (*rom, *(f"{key}: {path}" for key, path in self.missing_files.items()))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check_game_file(name_or_path: str) -> GameFileCheck:
    """Check everything of a game file but its ROM, the files of its start states, and play.

    Raises:
        GameFileError: lists every problem of the file, or its reward class cannot be used.
    """
    game = load_game(name_or_path, without_rom=True)
    definition = game.definition
    nothing = {name: lambda: None for name in (SCREEN_ARGUMENT, MEMORY, ACTION)}
    reward = game.custom_reward(nothing)  # its methods' parameters are checked
    if reward is not None:
        reward.check_parts(custom_part_names(definition, definition.parts))
    parts = part_formats(definition).items()
    return GameFileCheck(
        title=definition.title,
        rom=_needed_rom(game),
        missing_files=dict(_missing_files(game)),
        variables=tuple(definition.variables),
        actions=game.action_names,
        rewards=tuple(definition.rewards),
        reward_class=definition.reward,
        endings=tuple(definition.endings),
        start_states=tuple(definition.start_states),
        parts=tuple(PartSize(name, part.kind, part.shape, part.nbytes) for name, part in parts),
        least_frame_skip=least_frame_skip(definition.actions),
    )


def _needed_rom(game: Game) -> NeededRom:
    file = game.definition.rom
    if file.path is None:
        found = search_rom(file.hashes)
        path = found.path
        looked_in = found.looked_in
    else:
        at = game.folder / file.path
        path = at if at.is_file() else None
        looked_in = (str(at),)
    return NeededRom(file.hashes, None if path is None else str(path), looked_in)


def _missing_files(game: Game) -> Iterator[tuple[str, str]]:
    for name, state in game.definition.start_states.items():
        for key, path in (("file", state.file), ("battery", state.battery)):
            if path is not None and not (game.folder / path).is_file():
                yield f"start_states.{name}.{key}", str(game.folder / path)
