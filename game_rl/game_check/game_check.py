"""`game-rl check-game`: plays a game and reports what its game.yaml does, or what it only says."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.emulator.rom_search import hashes_text, search_rom
from game_rl.envs.episode_ends import EpisodeConditions
from game_rl.envs.episode_starts import game_changes
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.errors import LockUpError
from game_rl.game_check.env_checks import StartCourses, check_reward, check_starts, start_fault
from game_rl.game_check.game_trace import GameTrace
from game_rl.game_check.play_log import PlayLog, PlaySums, TermSum, VariableRange
from game_rl.game_check.recorded_episode import (
    LONGEST_EPISODE_TIMESTEPS,
    RecordedEpisode,
    recorded_timesteps,
    replay_fault,
    usual_frame_skip,
)
from game_rl.game_check.seed_search import SeedSearch, SeedsFound
from game_rl.game_check.sheets import Moment
from game_rl.games.actions import least_frame_skip
from game_rl.games.custom_reward import ACTION, MEMORY, SCREEN_ARGUMENT
from game_rl.games.definition import Game, load_game
from game_rl.games.start_state import ScriptStep, play_script

_LONGEST_HOLD_TIMESTEPS = 8  # a random player that never holds a button makes no progress
_REACTION_TIMESTEPS = 10
_FURTHER_FRAMES = (30, 120, 480)  # to wait for the game to obey
_MOST_OF_SCRIPTS = 64  # screens of scripts, and frames between two of a wait
_SCRIPT_FRAMES = 60


@dataclass(frozen=True)
class PartFacts:
    """A part of observations: its kind in game.yaml, its form, and its size as it is stored."""

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    stored_bytes: int


@dataclass(frozen=True)
class GameCheck:
    """The result of a check: what happened during play, and what looks wrong.

    Attributes:
        episodes: number of episodes begun; `ended` of them reached an ending, and `successes`
            counts those that ended with a success.
        at_random, recorded: the same of random play and of the recorded episode, each alone.
        courses: how many different episodes some seeds gave from each start state.
        warnings: sentences that each name an entry of game.yaml.
        game_changes: how start states change the game, in words.
        errors: such sentences about values that cannot be right.
        starts: each start state, for the contact sheet.
        moments: some moments of the play.
        scripts: what the scripts of start states lead to, step by step.
    """

    title: str
    timesteps: int
    episodes: int
    ended: int
    successes: int
    variables: tuple[VariableRange, ...]
    reward_terms: tuple[TermSum, ...]
    at_random: PlaySums
    recorded: PlaySums | None
    parts: tuple[PartFacts, ...]
    courses: tuple[StartCourses, ...]
    warnings: tuple[str, ...]
    game_changes: tuple[str, ...]
    errors: tuple[str, ...]
    starts: tuple[Moment, ...] = field(repr=False)
    moments: tuple[Moment, ...] = field(repr=False)
    scripts: tuple[Moment, ...] = field(repr=False)

    def to_json(self) -> dict[str, object]:
        """Return all but the pictures."""
        found = asdict(replace(self, starts=(), moments=(), scripts=()))
        del found["starts"], found["moments"], found["scripts"]
        return found


def check_game(
    game: Game,
    *,
    seed: int,
    timesteps: int,
    recorded: RecordedEpisode | None = None,
    trace: GameTrace | None = None,
) -> GameCheck:
    """Play random timesteps, divided among the start states, then the recorded episode if any.

    Args:
        trace: gets the recorded episode, or the random play if there is none.
    """
    emulator = make_emulator(game)
    parts = game.definition.parts
    config = _config_for(game)
    if recorded is not None and recorded.frame_skip is not None:
        config = config.model_copy(update={"frame_skip": recorded.frame_skip})
    with closing(make_game_env(config, game, emulator)) as env:
        courses, unvarying = check_starts(env, list(game.definition.start_states))
        start_states = [_look_at(env, game, name, seed) for name in game.definition.start_states]
        log = PlayLog(game, emulator)
        at_random: PlaySums | None = None
        for play in _plays(game, seed, timesteps, recorded):
            if play is recorded:
                at_random = log.take_part()
            _play(env, log, play, trace if recorded is None or play is recorded else None)
        of_starts = (*_start_state_warnings(start_states), *unvarying)
        conditions = env.tracker(EpisodeConditions)
        has_endings = conditions is not None and conditions.has_endings
        of_play = (*log.warnings(game, has_endings=has_endings), check_reward(env))
    last_part = log.take_part()
    of_record = () if recorded is None else _record_warnings(recorded, last_part, game, config)
    return GameCheck(
        title=game.definition.title,
        timesteps=log.timesteps,
        episodes=log.episodes,
        ended=log.ended,
        successes=log.successes,
        variables=log.variable_ranges(),
        reward_terms=log.term_sums(),
        at_random=last_part if at_random is None else at_random,
        recorded=None if at_random is None else last_part,
        parts=tuple(
            PartFacts(name, parts[name].kind, form.shape, form.dtype.name, form.nbytes)
            for name, form in game.definition.part_formats().items()
        ),
        courses=tuple(courses),
        warnings=tuple(filter(None, (*game.warnings, *of_record, *of_starts, *of_play))),
        game_changes=game_changes(game, EnvConfig()),
        errors=tuple(log.banks.errors()),
        starts=tuple(Moment(f"start: {state.name}", state.screen) for state in start_states),
        moments=tuple(log.some_moments()),
        scripts=tuple(islice(_script_moments(game), _MOST_OF_SCRIPTS)),
    )


def _record_warnings(
    recorded: RecordedEpisode, played: PlaySums, game: Game, config: EnvConfig
) -> tuple[str, ...]:
    """Say if an episode has not played as it was recorded."""
    if played.episodes != 1:
        return ()  # it goes on with another one
    fault = replay_fault(
        recorded,
        game,
        frame_skip=config.frame_skip,
        timesteps=played.timesteps,
        reward=sum(term.total for term in played.reward_terms),
        success=bool(played.successes),
    )
    if not fault:
        return ()
    return (
        f"the recorded episode does not replay as it was recorded: {fault}; the game file, game_rl "
        "or PyBoy has changed since then",
    )


def _script_moments(game: Game) -> Iterator[Moment]:
    """Yield the screen after each step of the scripts, and every 60 frames of a long one.

    What scripts have in common is shown once.
    """
    shown: set[tuple[ScriptStep, ...]] = set()
    with closing(make_emulator(game)) as emulator:
        power_on = emulator.save_state()
        for name, spec in game.definition.start_states.items():
            if spec.script is None or spec.battery is not None:
                continue
            emulator.load_state(power_on)
            frame = 0
            played = list[ScriptStep]()
            for part in (part for step in spec.script for part in _parts_of(step)):
                play_script(emulator, (part,))
                frame += part.wait or part.frames or 0
                played.append(part)
                if tuple(played) not in shown:
                    shown.add(tuple(played))
                    what = "wait" if part.hold is None else "+".join(part.hold)
                    yield Moment(f"{name} {frame:,}: {what}", emulator.screen().copy())


def _parts_of(step: ScriptStep) -> Iterator[ScriptStep]:
    left = step.wait or 0
    while left > _SCRIPT_FRAMES:
        yield ScriptStep(wait=_SCRIPT_FRAMES)
        left -= _SCRIPT_FRAMES
    yield step if step.wait is None else ScriptStep(wait=left)


def find_seed(
    game: Game,
    *,
    limit_s: float,
    progress: Callable[[int, int], None],
    only: Sequence[str] | None = None,
) -> SeedsFound:
    """Search the memory for the game's random numbers; see `SeedSearch`.

    Args:
        only: start states to begin from; None for all.
    """
    with closing(make_game_env(_config_for(game), game)) as env:
        search = SeedSearch(env, list(only or game.definition.start_states))
        return search.run(limit_s=limit_s, progress=progress)


def _config_for(game: Game) -> EnvConfig:
    return EnvConfig(
        max_episode_timesteps=LONGEST_EPISODE_TIMESTEPS,
        frame_skip=usual_frame_skip(game),
        observation=ObservationConfig(parts=tuple(game.definition.parts)),
    )


@dataclass(frozen=True, eq=False)
class _StartState:
    name: str
    screen: NDArray[np.uint8]
    sets: str  # the variables that it sets, in words
    fault: str | None


def _look_at(env: GameBoyEnv, game: Game, name: str, seed: int) -> _StartState:
    fault = start_fault(env, name)
    first = _Reactions(env, game, name, seed, idle_frames=0)
    if fault is None and first.always_over:
        fault = (
            f"start_states.{name}: every action ends the episode in its first timestep; let it "
            "start earlier, or correct the `endings` of the reward class"
        )
    elif fault is None and not first.differ:
        fault = first.fault(_reacts_after(env, game, name, seed))
    sets = game.definition.start_states[name].in_words
    return _StartState(name, first.screen, sets, fault)


def _reacts_after(env: GameBoyEnv, game: Game, name: str, seed: int) -> int | None:
    """Return frames without a button after which actions make a difference, if some do."""
    for frames in _FURTHER_FRAMES:
        try:
            if _Reactions(env, game, name, seed, idle_frames=frames).differ:
                return frames
        except LockUpError:
            return None
    return None


class _Reactions:
    """What each action leads to if it is played for some timesteps from a start state.

    Attributes:
        screen: the picture before the first timestep.
        differ: whether an action leads to something else than another.
        always_over: whether each action ends the episode in its first timestep.
    """

    def __init__(
        self, env: GameBoyEnv, game: Game, name: str, seed: int, *, idle_frames: int
    ) -> None:
        self._name = name
        outcomes = set()
        lengths = []
        for action in range(len(game.definition.actions)):
            env.reset(seed=seed, options={"start_state": name, "idle_frames": idle_frames})
            self.screen = env.render()
            before = env.read_variables()
            length = 0
            over = False
            while length < _REACTION_TIMESTEPS and not over:
                _, _, terminated, truncated, _ = env.step(action)
                length = length + 1
                over = terminated or truncated
            lengths.append(length if over else length + 1)
            after = env.read_variables()
            self._last = env.render()
            outcomes.add((self._last.tobytes(), tuple(after.values())))
        self.differ = len(outcomes) > 1
        self.always_over = set(lengths) == {1}
        self._changed = [name for name, value in after.items() if value != before[name]]

    def fault(self, reacts_after: int | None) -> str:
        """Say that no action makes a difference, and what happens meanwhile."""
        moves = "stands still" if np.array_equal(self.screen, self._last) else "changes by itself"
        changed = ", ".join(self._changed) or "no variable"
        if reacts_after is None:
            way_out = "the game may wait for a button that no action holds, such as start"
        else:
            way_out = f"they do after {reacts_after} more frames: add {{wait: {reacts_after}}}"
        return (
            f"start_states.{self._name}: no action makes a difference within {_REACTION_TIMESTEPS} "
            f"timesteps, in which the screen {moves} and {changed} changed; {way_out}; the screens "
            "of the script are in the sheet of scripts"
        )


def _start_state_warnings(states: list[_StartState]) -> Iterator[str]:
    for index, state in enumerate(states):
        where = f"start_states.{state.name}"
        if state.fault is not None:
            yield state.fault
        if np.ptp(state.screen) == 0:
            yield f"{where}: the screen is blank; let the script run until it shows the game"
        for other in states[:index]:
            if state.sets == other.sets and np.array_equal(state.screen, other.screen):
                yield f"{where}: shows the same screen as {other.name}; change one of the scripts"


def _plays(
    game: Game, seed: int, timesteps: int, recorded: RecordedEpisode | None
) -> Iterator[RecordedEpisode]:
    """Yield everything to play."""
    rng = np.random.default_rng(seed)
    names = list(game.definition.start_states)
    for index, name in enumerate(names):
        share = timesteps // len(names) + (index < timesteps % len(names))
        actions: list[str] = []
        while len(actions) < share:
            action = game.action_names[rng.integers(len(game.action_names))]
            actions += [action] * int(rng.integers(1, _LONGEST_HOLD_TIMESTEPS + 1))
        if share:
            yield RecordedEpisode(
                start_state=name, seed=seed + index, actions=tuple(actions[:share])
            )
    if recorded is not None:
        yield recorded


def _play(
    env: GameBoyEnv,
    log: PlayLog,
    play: RecordedEpisode,
    trace: GameTrace | None,
) -> None:
    over = True
    start_state = play.start_state
    seed = play.seed
    options = play.options
    for timestep in recorded_timesteps(play, env.game):
        if over:
            env.reset(seed=seed, options=options)
            options.pop("game_seed", None)
            log.begin(env)
            if trace is not None:
                trace.begin(env, start_state)
            seed += 1_000_003  # another game seed for the next episode
        _, reward, terminated, truncated, info = timestep.play(env)
        log.add(env, start_state, info)
        if log.timesteps.bit_count() == 1:  # early, and again as its state grows
            check_reward(env)
        over = terminated or truncated
        if trace is not None:
            trace.add(env, timestep.action, reward, info.get("ending", "locked up" if over else ""))


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
        reward.check_parts(definition.custom_part_names(definition.parts))
    parts = definition.part_formats().items()
    rom = definition.rom
    if rom.path is None:
        found = search_rom(rom.hashes)
        path = found.path
        looked_in = found.looked_in
    else:
        at = game.folder / rom.path
        path = at if at.is_file() else None
        looked_in = (str(at),)
    names = tuple(definition.start_states)
    return GameFileCheck(
        title=definition.title,
        rom=NeededRom(rom.hashes, None if path is None else str(path), looked_in),
        missing_files={
            ".".join(key): str(game.folder / path)
            for key, path in sorted(definition.state_files(), key=lambda f: names.index(f[0][1]))
            if not (game.folder / path).is_file()
        },
        variables=tuple(definition.variables),
        actions=game.action_names,
        rewards=tuple(definition.rewards),
        reward_class=definition.reward,
        endings=tuple(definition.endings),
        start_states=names,
        parts=tuple(PartSize(name, part.kind, part.shape, part.nbytes) for name, part in parts),
        least_frame_skip=least_frame_skip(definition.actions),
    )
