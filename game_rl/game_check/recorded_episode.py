"""A recorded episode: a file with what a person, a script or an exploration has played."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, ValidationError

from game_rl.config.loader import LARGEST_YAML_BYTES, load_yaml_model
from game_rl.config.schema import MOST_FRAME_SKIP, EnvConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.emulator.emulator import Button, Press
from game_rl.envs.episode_starts import MOST_IDLE_FRAMES
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import Observation
from game_rl.errors import GameFileError
from game_rl.files.saved import Sha256
from game_rl.games.actions import (
    ActionSpec,
    buttons_of,
    least_frame_skip,
    nearest_action,
)
from game_rl.games.definition import Game, unknown_name

_REWARD_TOLERANCE = 1e-6
_MOST_BYTES = 8 * 2**20
_SHOWN_PROBLEMS = 10

HeldButtons = tuple[tuple[Button, ...], Annotated[int, Field(ge=1)]]
"""Buttons and the frames for which they were held, all others being released."""


class RecordedEpisode(StrictModel):
    """A JSON file `{"start_state": "level_1", "seed": 0, "actions": ["right", "punch", …]}`.

    In place of `actions`, `presses` has the buttons of every frame, as `game-rl play` records them:
    `[[["a", "right"], 7], [[], 30], …]`.
    """

    start_state: str
    seed: Annotated[int, Field(ge=0)] = 0
    frame_skip: Annotated[int, Field(ge=1, le=MOST_FRAME_SKIP)] | None = None
    """Frames of a timestep; null: those of check-game."""
    idle_frames: Annotated[int, Field(ge=0, le=MOST_IDLE_FRAMES)] = 0
    """Frames without a button before the first timestep."""
    game_seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    """Value that `random_seed` of game.yaml gets; null: one that `seed` draws."""
    actions: tuple[str, ...] = ()
    """Name of the action at each timestep."""
    presses: tuple[HeldButtons, ...] = ()
    """Buttons that were held, and for how many frames, one after the other."""
    rom_sha256: Sha256 | None = None
    """sha256 of the ROM; null: it is not checked."""
    reward: float | None = None
    """Sum of the rewards of game.yaml; null: it is not checked."""
    success: bool | None = None
    """Whether the episode ended in a success, false if it did not end at all; null: the game has no
    success, or that is not checked."""

    @property
    def options(self) -> dict[str, str | int]:
        """Options of the reset with which it begins."""
        found: dict[str, str | int] = {
            "start_state": self.start_state,
            "idle_frames": self.idle_frames,
        }
        if self.game_seed is not None:
            found["game_seed"] = self.game_seed
        return found

    def problems(self) -> Iterable[Problem]:
        if not self.actions and not self.presses:
            yield Problem(
                ("actions",), "nothing is played; write the `actions`, or the `presses` of buttons"
            )
        elif self.actions and self.presses:
            yield Problem(
                ("presses",),
                "the episode has `actions`, too; remove one of the two",
                (("actions",),),
            )


def read_recorded_episode(path: Path, game: Game) -> RecordedEpisode:
    """Read the episode in the JSON (or YAML) file at `path`.

    JSON is read by itself, up to 8 MiB: two hours of play with other buttons in each frame. The
    limits of YAML, which a person writes and whose aliases may multiply, are those of minutes.

    Raises:
        GameFileError: the file is not a recorded episode, it is of another ROM, it names a start
            state or action that the game does not have, or it is too long.
    """

    def unknown_names(episode: RecordedEpisode) -> Iterable[Problem]:
        if episode.rom_sha256 not in (None, game.rom.sha256):
            yield Problem(
                ("rom_sha256",),
                f"the episode comes from another ROM than {game.rom.path}, which has "
                f"{game.rom.sha256}; name the game that was played",
            )
        known_states = game.definition.start_states
        if episode.start_state not in known_states:
            message = unknown_name(episode.start_state, "start state", known_states)
            yield Problem(("start_state",), message)
        for index, name in enumerate(episode.actions):
            if name not in game.definition.actions:
                message = unknown_name(name, "action", game.action_names)
                yield Problem(("actions", str(index)), message)

    text = _text_of(path)
    if text is not None:
        problems, episode = _of_json(text, unknown_names)
        if episode is not None and not problems:
            return episode
        if len(text) > LARGEST_YAML_BYTES:
            rows = [f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS]]
            raise GameFileError(
                "\n".join((f"{path}: not a recorded episode of {game.name}", *rows))
            )
    # YAML, or JSON with mistakes, of which this says the lines
    return load_yaml_model(path, RecordedEpisode, error=GameFileError, more_checks=unknown_names)


def _text_of(path: Path) -> bytes | None:
    """Return what is in a file that may be JSON; None if it cannot be read.

    Raises:
        GameFileError: it is too long.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
    if len(text) > _MOST_BYTES:
        raise GameFileError(
            f"{path}: larger than {_MOST_BYTES // 2**20} MiB, in which two hours of play fit; "
            "record several episodes (N in game-rl play), or name another file"
        )
    return text


def _of_json(
    text: bytes, checks: Callable[[RecordedEpisode], Iterable[Problem]]
) -> tuple[list[str], RecordedEpisode | None]:
    """Return what is wrong with an episode in JSON, and the episode; None if there is none."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key is written twice; keep one")
        return found

    try:
        json.loads(text, object_pairs_hook=unique)
        episode = RecordedEpisode.model_validate_json(text, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found], None
    except (ValueError, RecursionError) as error:
        return [str(error)], None
    return [f"{'.'.join(each.key)}: {each.message}" for each in checks(episode)], episode


LONGEST_EPISODE_TIMESTEPS = 1_000_000
"""So many that only the endings end an episode that is recorded or checked."""


def episode_config(game: Game, episode: RecordedEpisode) -> EnvConfig:
    """Return the env in which a recorded episode is played."""
    return EnvConfig(
        max_episode_timesteps=LONGEST_EPISODE_TIMESTEPS,
        frame_skip=episode.frame_skip or usual_frame_skip(game),
    )


def usual_frame_skip(game: Game) -> int:
    """Return the frames of a timestep of an episode that does not say them."""
    return max(EnvConfig().frame_skip, least_frame_skip(game.definition.actions))


class RecordedTimestep(NamedTuple):
    """A timestep of a recorded episode.

    Attributes:
        action: name of its action, or of the nearest one to the buttons that were held.
        presses: the buttons that were held; None: those of the action.
    """

    action: str
    presses: tuple[Press, ...] | None = None

    def play(self, env: GameBoyEnv) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play it as it was recorded, frame by frame; returns what `env.step` does."""
        env.player.instead = self.presses
        return env.step(env.action_names.index(self.action))


def recorded_timesteps(episode: RecordedEpisode, game: Game) -> tuple[RecordedTimestep, ...]:
    """Return the timesteps of an episode; the last one may have fewer frames."""
    if episode.actions:
        return tuple(RecordedTimestep(name) for name in episode.actions)
    frame_skip = episode.frame_skip or usual_frame_skip(game)
    nearest: dict[tuple[Press, ...], str] = {}
    found = []
    for presses in _in_timesteps(episode.presses, frame_skip):
        if presses not in nearest:
            nearest[presses] = nearest_action(game.definition.actions, presses)
        found.append(RecordedTimestep(nearest[presses], presses))
    return tuple(found)


def _in_timesteps(presses: Sequence[HeldButtons], frame_skip: int) -> Iterator[tuple[Press, ...]]:
    """Cut what was held into pieces of `frame_skip` frames; the last one may be shorter."""
    piece: list[Press] = []
    room = frame_skip
    for buttons, frames in presses:
        left = frames
        while left:
            part = min(left, room)
            piece.append(Press(frozenset(buttons), part))
            left -= part
            room -= part
            if not room:
                yield tuple(piece)
                piece = []
                room = frame_skip
    if piece:
        yield tuple(piece)


def replay_fault(
    recorded: RecordedEpisode,
    game: Game,
    *,
    frame_skip: int,
    timesteps: int,
    reward: float,
    success: bool | None,
) -> str:
    """Return how a play of an episode differs from its record; empty if it does not.

    Buttons after the end do not count, as who plays may go on to press some.

    Args:
        frame_skip: with which it was played now.
        timesteps: how many it took until it was over.
        reward: sum of what the reward terms of game.yaml earned.
        success: whether it ended in one; None if it did not end.
    """
    if timesteps < len(recorded.actions):
        return f"it ends after {timesteps:,} of its {len(recorded.actions):,} timesteps"
    expected = recorded.reward
    if any(term.per_run for term in game.definition.rewards.values()):
        expected = None  # that depends on what a run has visited
    if frame_skip != (recorded.frame_skip or usual_frame_skip(game)):
        expected = None  # so does that on the moments at which it is asked
    if expected is not None and abs(expected - reward) > _REWARD_TOLERANCE:
        return f"it earns {reward:g}, and earned {expected:g}"
    if recorded.success is not None and recorded.success != bool(success):
        return "it ends in no success" if recorded.success else "it ends in a success"
    return ""


def rounded_episode(
    episode: RecordedEpisode, game: Game, *, frame_skip: int | None = None
) -> RecordedEpisode:
    """Return the episode with an action for each timestep in place of the buttons of each frame.

    A button counts as held in a timestep if it was held for half of it. A press that would be lost
    so is held in the timestep that has most of it. The action is one that holds these buttons, or
    the nearest to them. All timesteps are taken to be equally long. Those of a game with `step` are
    not, so there the actions drift away from the play.

    Args:
        frame_skip: frames of a timestep; None: those of the episode.
    """
    skip = frame_skip or episode.frame_skip or usual_frame_skip(game)
    if episode.actions:
        return episode
    pieces = tuple(_in_timesteps(episode.presses, skip))
    wanted = _held_in_timesteps(episode.presses, skip, len(pieces))
    actions = game.definition.actions
    chosen = tuple(
        _action_for(actions, buttons, presses)
        for buttons, presses in zip(wanted, pieces, strict=True)
    )
    return episode.model_copy(update={"frame_skip": skip, "actions": chosen, "presses": ()})


def _held_in_timesteps(
    presses: Sequence[HeldButtons], frame_skip: int, n_timesteps: int
) -> list[set[Button]]:
    """Return the buttons that count as held in each timestep."""
    found: list[set[Button]] = [set() for _ in range(n_timesteps)]
    for button, first, end in _holds(presses):
        shares = {
            index: min(end, (index + 1) * frame_skip) - max(first, index * frame_skip)
            for index in range(first // frame_skip, -(-end // frame_skip))
        }
        held = [index for index, frames in shares.items() if 2 * frames >= frame_skip]
        for index in held or [max(shares, key=shares.__getitem__)]:
            found[index].add(button)
    return found


def _holds(presses: Sequence[HeldButtons]) -> Iterator[tuple[Button, int, int]]:
    """Yield each press of a button with its first frame and the one after its last."""
    since: dict[Button, int] = {}
    at = 0
    for buttons, frames in (*presses, ((), 0)):
        for button in [button for button in since if button not in buttons]:
            yield button, since.pop(button), at
        for button in buttons:
            since.setdefault(button, at)
        at += frames


def _action_for(
    actions: Mapping[str, ActionSpec], buttons: set[Button], presses: tuple[Press, ...]
) -> str:
    """Return the action that presses these buttons, of several the nearest to all frames."""
    least = min(len(buttons_of(action) ^ buttons) for action in actions.values())
    fitting = {
        name: action
        for name, action in actions.items()
        if len(buttons_of(action) ^ buttons) == least
    }
    return nearest_action(fitting, presses)
