"""What is wrong with where an env's episodes begin, and with its rewards, found out by playing.

Episodes must differ from one another in what happens, not only in how memory begins. The same
actions are played after several beginnings. What happens is the course of an episode: the screen
and the watched variables after every fourth timestep. Memory is not compared: a counter there may
differ although the level is the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from game_rl.envs.action_player import ActionPlayer
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_ends import EpisodeConditions
from game_rl.envs.episode_reward import EpisodeReward
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import innermost
from game_rl.errors import LockUpError
from game_rl.games.variables import Variable

SEEDS = 20
_SEEDS_OF_LONG_PLAY = 5
_SEED = 0x5A3C96E1  # they differ in every bit
_OTHER_SEED = 0xA5C3691E
_FEW_FRAMES = 120
_FRAMES = 600  # the bundled games use random numbers within the latter
_LONG_FRAMES = 4_800
_LONGEST_HOLD_TIMESTEPS = 8
_TIMESTEPS_A_PICTURE = 4  # what differs goes on to differ, and drawing takes half of the time
_REGISTERS = range(0xFF00, 0xFF80)


class _Beginning(NamedTuple):
    game_seed: int
    idle_frames: int


@dataclass(frozen=True)
class StartCourses:
    """How many courses of events some seeds gave, with the same actions.

    Attributes:
        start_state: where all of the episodes began.
        frames: frames that were played of each.
    """

    start_state: str
    seeds: int
    courses: int
    frames: int

    @property
    def is_few(self) -> bool:
        return 10 * self.courses <= self.seeds


class CoursePlayer:
    """Plays the same actions again and again, from wherever the emulator of an env is.

    The env may end up in any state. The variables that its trackers need belong to a course, but
    for the one that gets a random value.
    """

    def __init__(self, env: GameBoyEnv) -> None:
        self._emulator = env.emulator
        self._watched = env.watched
        self._frame_skip = env.player.frame_skip
        self._player = ActionPlayer(env.emulator, env.game, self._frame_skip, 0.0)
        self._seed = env.starts.seed_variable

    def timesteps(self, frames: int, *, draws: bool = True) -> Iterator[bool]:
        """Play timesteps of about `frames` frames; yield after each whether its screen is drawn."""
        rng = np.random.default_rng(0)
        done = 0
        number = 0
        while done < frames:
            action = int(rng.integers(self._player.n_actions))
            for _ in range(int(rng.integers(1, _LONGEST_HOLD_TIMESTEPS + 1))):
                number += 1
                is_drawn = draws and number % _TIMESTEPS_A_PICTURE == 0
                self._player.play(action, rng, render=is_drawn)
                done += self._frame_skip + self._player.waited_frames
                yield is_drawn
                if done >= frames:
                    return

    def seen(self) -> bytes:
        """Return what belongs to a course at this moment: the screen and the variables."""
        screen = self._emulator.screen()
        picture = screen if self._emulator.is_colour else screen[:, :, 0]
        values = self._watched.read(self._emulator)
        if self._seed is not None:
            values.pop(self._seed.name, None)
        return picture.tobytes() + repr(sorted(values.items())).encode()


class StartVariety:
    """Counts the courses of episodes, and says what does not vary them though it should.

    Args:
        env: its next call must be `reset`.
        is_thorough: whether courses are counted. Otherwise two that differ are enough, and the
            answer takes about a second at most.
    """

    def __init__(self, env: GameBoyEnv, *, is_thorough: bool) -> None:
        self._player = CoursePlayer(env)
        self._game = env.game
        self._starts = env.starts
        self._is_thorough = is_thorough
        self._played: dict[tuple[str, _Beginning, int], bytes] = {}

    def count(self, name: str) -> StartCourses:
        """Play the same actions with several seeds from this start state."""
        beginnings = self._beginnings()
        if len(set(beginnings)) == 1:
            return StartCourses(name, SEEDS, 1, 0)
        pair = beginnings[:2]
        for frames in (_FEW_FRAMES, _FRAMES, _LONG_FRAMES):
            if self._courses(name, pair, frames) == 1:
                continue
            seeds = _SEEDS_OF_LONG_PLAY if frames == _LONG_FRAMES else SEEDS
            played = beginnings[:seeds] if self._is_thorough else pair
            found = StartCourses(name, len(played), self._courses(name, played, frames), frames)
            if found.courses == found.seeds or frames >= _FRAMES:
                return found
        return StartCourses(name, SEEDS, self._courses(name, beginnings, _FRAMES), _FRAMES)

    def warnings(self, found: Sequence[StartCourses]) -> Iterator[str]:
        """Yield what the counted courses mean."""
        same = [each for each in found if each.courses == 1]
        few = [each for each in found if each.is_few and each not in same]
        others = [each.start_state for each in found if each not in same]
        seed = self._starts.seed_variable
        idle_frames = self._starts.max_idle_frames
        if seed is not None:
            yield from (self._about_seed(seed, each) for each in (same, few) if each)
            return
        if "random_seed" in self._game.definition.model_fields_set:
            return  # it says that there is none
        if same:
            what = "random_seed: there is none, and env.max_idle_frames is 0"
            if idle_frames:
                frames = f"{idle_frames} frames without a button"
                what = f"env.max_idle_frames: {frames} make no difference"
            yield f"{what}: {_told(same)}; {self._way_out}"
        if others:
            yield (
                f"random_seed: there is none, so episodes from {', '.join(others)} differ only by "
                f"their 0 to {idle_frames} idle frames; {self._way_out}"
            )

    @property
    def _way_out(self) -> str:
        return (
            "if the game draws random numbers, name the variable in which it keeps them as "
            "`random_seed` (game-rl check-game FILE --find-seed searches for it); if it draws "
            "none, write `random_seed: null`"
        )

    def _beginnings(self) -> list[_Beginning]:
        """Return beginnings as episodes draw them; with a seed, they differ by it alone."""
        rng = np.random.default_rng(0)
        idle_frames = self._starts.max_idle_frames
        if self._starts.seed_variable is not None:
            others = (int(seed) for seed in rng.integers(2**32, size=SEEDS - 2))
            return [_Beginning(seed, 0) for seed in (_SEED, _OTHER_SEED, *others)]
        drawn = (int(n) for n in rng.integers(idle_frames + 1, size=SEEDS - 2))
        return [_Beginning(_SEED, n) for n in (0, idle_frames, *drawn)]

    def _courses(self, name: str, beginnings: Sequence[_Beginning], frames: int) -> int:
        for key in ((name, beginning, frames) for beginning in beginnings):
            if key not in self._played:
                self._played[key] = self._play(*key)
        return len({self._played[name, beginning, frames] for beginning in beginnings})

    def _play(self, name: str, beginning: _Beginning, frames: int) -> bytes:
        course = blake2b()
        try:
            self._starts.bring(
                name, game_seed=beginning.game_seed, idle_frames=beginning.idle_frames
            )
            for is_drawn in self._player.timesteps(frames):
                self._starts.hold_values(name)
                if is_drawn:
                    course.update(self._player.seen())
        except LockUpError as error:
            course.update(str(error).encode())
        return course.digest()

    def _about_seed(self, seed: Variable, found: Sequence[StartCourses]) -> str:
        register = ", as it is a hardware register," if seed.address in _REGISTERS else ""
        why = "" if self._keeps(seed) else f" does not keep what is written to it{register} and"
        effect = "makes no difference" if found[0].courses == 1 else "makes little difference"
        return (
            f"random_seed: {seed.name} (0x{seed.address:04X}){why} {effect}: {_told(found)}; name "
            "the variable in which the game keeps its random numbers (game-rl check-game FILE "
            "--find-seed searches for it)"
        )

    def _keeps(self, seed: Variable) -> bool:
        for value in (_SEED, _OTHER_SEED):
            seed.write(self._starts.emulator, value)
            if seed.read(self._starts.emulator) != value % 256**seed.n_bytes:
                return False
        return True


def _told(found: Sequence[StartCourses]) -> str:
    """Return the counts in words: "20 seeds gave 1 course of events from shore and caves"."""
    by_counts: dict[tuple[int, int], list[str]] = {}
    for each in found:
        by_counts.setdefault((each.seeds, each.courses), []).append(each.start_state)
    return ", ".join(
        f"{seeds} seeds gave {courses_text(courses)} from {' and '.join(names)}"
        for (seeds, courses), names in by_counts.items()
    )


def courses_text(courses: int) -> str:
    return f"{courses} course{'' if courses == 1 else 's'} of events"


_TRIED_TIMESTEPS = 8
_MOST_LOOKED_AT = 8  # start states at the beginning of a training; each takes some 50 ms


def start_warnings(env: GameEnv) -> list[str]:
    """Say quickly what is wrong with where episodes begin; the next call must be `reset`.

    Every episode may be the same, for instance, or already over. Also warns of wrappers that load
    torch, for which each worker pays.
    """
    game_env = innermost(env)
    names = game_env.starts.names
    found = [start_fault(game_env, name) for name in names[:_MOST_LOOKED_AT]]
    _, warnings = check_starts(game_env, names[:1], is_thorough=False)
    if env.has_loaded_torch:
        warnings.append(
            "a module of env.wrappers loads torch, which takes about 200 MB in each worker: "
            "keep wrappers in a module that imports neither torch nor stable_baselines3"
        )
    return [*filter(None, found), *warnings]


def check_starts(
    env: GameBoyEnv, names: Sequence[str], *, is_thorough: bool = True
) -> tuple[list[StartCourses], list[str]]:
    """Return how episodes from these start states vary, and warnings; then call `reset`."""
    variety = StartVariety(env, is_thorough=is_thorough)
    unkept = [text for name in names for text in env.starts.unkept(name)]
    courses = [variety.count(name) for name in names]
    return courses, [*unkept, *variety.warnings(courses)]


def start_fault(env: GameBoyEnv, name: str) -> str | None:
    """Say if an episode is over or won in this start state; the next call must be `reset`."""
    env.starts.bring(name, game_seed=0, idle_frames=0)
    conditions = env.tracker(EpisodeConditions)
    held = "" if conditions is None else conditions.held_at_start(env.read_variables())
    if held in env.game.definition.endings:
        return (
            f"start_states.{name}: the ending {held} holds already, so each episode from there "
            "is over in its first timestep, whatever the agent does; let it start earlier, or "
            f"correct endings.{held}"
        )
    if held:
        return (
            f"start_states.{name}: success holds already, so episodes from there count as won, "
            "whatever the agent does; let it start earlier, or correct `success`"
        )
    return None


def try_reward(env: GameEnv) -> None:
    """Check the game's own reward class after a few timesteps; the next call must be `reset`.

    Raises:
        GameFileError: it fails, or what it holds then cannot be saved or loaded.
    """
    game_env = innermost(env)
    reward = game_env.tracker(EpisodeReward)
    if game_env.game.definition.reward is None or reward is None:
        return
    game_env.reset(seed=0)
    for number in range(_TRIED_TIMESTEPS):
        if game_env.episode.running:
            game_env.step(number % game_env.player.n_actions)
            if game_env.episode.running:
                reward.check_parts(game_env.read_variables())
                reward.renew_custom()
    game_env.episode.running = False


def check_reward(env: GameEnv) -> str | None:
    """Return a warning about the rewards so far, or about a wrapper that cannot be saved.

    The env goes on with a saved and loaded copy of the game's own reward class, as a resumed run
    does, so that what cannot be saved is found now.

    Raises:
        GameFileError: the class cannot be saved or loaded.
    """
    reward = env.tracker(EpisodeReward)
    assert reward is not None
    if innermost(env).episode.running:
        reward.renew_custom()
    unsaved = env.unsaved_wrapper()
    warning = reward.largest.warning
    if warning is not None or unsaved is None:
        return warning
    return (
        f"{unsaved}, changes its attributes and has no state_dict and load_state_dict: "
        "the episodes start again at a resume, and the wrapper with them"
    )
