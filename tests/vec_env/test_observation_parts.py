"""Observations and actions in parts, against SB3's vec envs and against plain loops."""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
)

from game_rl.envs.observation import ObservationFormat
from game_rl.errors import WorkerError
from game_rl.vec_env.frame_stacks import (
    FrameStack,
    new_stacks,
    part_items,
    space_bytes,
    stacked_space,
)
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.vec_env.part_envs import FORMAT, IN_PARTS, SINGLE, PartEpisodes, Parts, Stained, Unfit

N_ENVS = 3
EnvFn = Callable[[], gym.Env]
Maker = Callable[..., SharedMemoryVecEnv]


@pytest.fixture
def make() -> Iterator[Maker]:
    made: list[SharedMemoryVecEnv] = []

    def _make(
        *env_fns: EnvFn, start_method: Any = "in_process", **settings: Any
    ) -> SharedMemoryVecEnv:
        made.append(SharedMemoryVecEnv(env_fns, start_method=start_method, **settings))
        return made[-1]

    yield _make
    for vec_env in made:
        vec_env.close()


def assert_same(ours: Any, theirs: Any) -> None:
    """The same values, types and order of keys."""
    assert isinstance(theirs, type(ours))  # DummyVecEnv gives an OrderedDict
    pairs = zip(part_items(ours), part_items(theirs), strict=True)
    for (ours_key, array), (key, expected) in pairs:
        assert ours_key == key
        assert np.asarray(array).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(array, expected, strict=True)


def sampled(space: spaces.Space[Any], n: int) -> list[Any]:
    space.seed(9)
    return [space.sample() for _ in range(n)]


def assert_plays_as(vec_env: VecEnv, oracle: VecEnv, n_steps: int = 60) -> int:
    """Return the number of episodes that ended."""
    assert vec_env.observation_space == oracle.observation_space
    envs = VecMonitor(vec_env), VecMonitor(oracle)
    actions, n_ended = sampled(oracle.action_space, n_steps * N_ENVS), 0
    for env in envs:
        env.seed(4)
    assert_same(*(env.reset() for env in envs))
    for step in range(n_steps):
        chosen: Any = actions[step * N_ENVS : (step + 1) * N_ENVS]
        ours, rewards, dones, infos = envs[0].step(chosen)
        theirs, their_rewards, their_dones, their_infos = envs[1].step(chosen)
        assert_same(ours, theirs)
        np.testing.assert_array_equal(rewards, np.float32(their_rewards))
        np.testing.assert_array_equal(dones, their_dones)
        for info, its in zip(infos, their_infos, strict=True):
            assert info.keys() == its.keys()
            for name, value in info.items():
                if name == "terminal_observation":
                    assert_equal_last(value, its[name], list(dict(part_items(ours))))
                elif name != "episode":
                    assert value == its[name]
        assert envs[0].unwrapped.reset_infos == list(envs[1].unwrapped.reset_infos)
        n_ended += int(np.count_nonzero(dones))
    return n_ended


def assert_equal_last(ours: Any, theirs: Any, keys: list[Any]) -> None:
    """SB3 gives the last observation as the env does, whose dict has an order of its own."""
    if isinstance(theirs, Mapping):
        theirs = {key: theirs[key] for key in keys}
    assert [key for key, _ in part_items(ours)] == keys
    for (_, array), (_, expected) in zip(part_items(ours), part_items(theirs), strict=True):
        np.testing.assert_array_equal(array, np.asarray(expected), strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
@pytest.mark.parametrize("space", [*SINGLE.values(), *IN_PARTS.values()], ids=[*SINGLE, *IN_PARTS])
def test_every_space_of_arrays_is_as_in_the_dummy_vec_env_of_sb3(
    make: Maker, space: spaces.Space[Any], n_workers: int
) -> None:
    env_fns: list[EnvFn] = [functools.partial(PartEpisodes, space)] * N_ENVS
    assert assert_plays_as(make(*env_fns, n_workers=n_workers), DummyVecEnv(env_fns)) > 15


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_worker_processes_do_the_same_as_the_subproc_vec_env_of_sb3(make: Maker, kind: str) -> None:
    env_fns: list[EnvFn] = [functools.partial(PartEpisodes, IN_PARTS[kind])] * N_ENVS
    vec_env = make(*env_fns, n_workers=2, start_method=None)
    assert assert_plays_as(vec_env, SubprocVecEnv(env_fns)) > 15


ACTIONS = {name: SINGLE[name] for name in ("numbers", "discrete", "multidiscrete", "multibinary")}


@pytest.mark.parametrize("actions", [spaces.Dict(ACTIONS), spaces.Tuple(tuple(ACTIONS.values()))])
def test_an_env_gets_the_actions_that_it_gets_from_sb3(
    make: Maker, actions: spaces.Space[Any]
) -> None:
    env_fns: list[EnvFn] = [functools.partial(PartEpisodes, SINGLE["numbers"], actions)] * N_ENVS
    assert_plays_as(make(*env_fns, n_workers=2), DummyVecEnv(env_fns))


def test_actions_of_another_number_are_refused(make: Maker) -> None:
    vec_env = make(
        *[functools.partial(PartEpisodes, SINGLE["numbers"], IN_PARTS["tuple of one"])] * 2
    )
    vec_env.reset()
    with pytest.raises(ValueError, match=r"actions are \(1,\), not \(2,\)"):
        vec_env.step(sampled(IN_PARTS["tuple of one"], 1))  # type: ignore[arg-type]


def test_what_was_returned_never_changes_afterwards(make: Maker) -> None:
    vec_env = make(*[Parts] * N_ENVS, frame_stack=FORMAT.stacks)
    vec_env.seed(1)
    held: list[Any] = [vec_env.reset()]
    copies = [{name: array.copy() for name, array in held[0].items()}]
    for _ in range(30):
        observations, _, dones, infos = vec_env.step(np.zeros(N_ENVS, int))
        for each in [observations, *(infos[i]["terminal_observation"] for i in dones.nonzero()[0])]:
            held.append(each)
            copies.append({name: array.copy() for name, array in each.items()})
    np.testing.assert_equal(held, copies)
    assert len(held) > 40


# ---------------------------------------------------------------------- frame stacks


BOXES = spaces.Dict({name: SINGLE[name] for name in ("picture", "numbers")})


@pytest.mark.parametrize("frame_stack", [1, 2, 4])
def test_all_boxes_of_a_dict_are_stacked_as_by_sb3(make: Maker, frame_stack: int) -> None:
    env_fns: list[EnvFn] = [functools.partial(PartEpisodes, BOXES)] * N_ENVS
    oracle = VecFrameStack(DummyVecEnv(env_fns), frame_stack, channels_order="first")
    assert_plays_as(make(*env_fns, frame_stack=frame_stack), oracle)


class NewestOf(VecFrameStack):
    """SB3's stacks of all parts, of which only the newest arrays of some are kept."""

    def __init__(self, venv: VecEnv, n_stack: int, sizes: Mapping[str, int]) -> None:
        super().__init__(venv, n_stack, channels_order="first")
        single = venv.observation_space
        assert isinstance(single, spaces.Dict)
        self._rows = {name: size * single[name].shape[0] for name, size in sizes.items()}
        self.observation_space = spaces.Dict(
            {
                name: spaces.Box(part.low[-rows:], part.high[-rows:], dtype=part.dtype)
                for (name, part), rows in self._pairs(self.observation_space)
            }
        )

    def _pairs(self, parts: Any) -> Any:
        return [((name, part), self._rows[name]) for name, part in parts.items()]

    def reset(self) -> Any:
        return {n: part[:, -rows:].copy() for (n, part), rows in self._pairs(super().reset())}

    def step_wait(self) -> Any:
        stacks, rewards, dones, infos = super().step_wait()
        for info in infos:
            if "terminal_observation" in info:
                last = self._pairs(info["terminal_observation"])
                info["terminal_observation"] = {name: part[-rows:] for (name, part), rows in last}
        stacks = {name: part[:, -rows:].copy() for (name, part), rows in self._pairs(stacks)}
        return stacks, rewards, dones, infos


@pytest.mark.parametrize(
    "sizes",
    [
        {"picture": 3},
        {"numbers": 3},
        {"picture": 3, "numbers": 2},
        {"picture": 1},
        {},
    ],
)
def test_parts_are_stacked_by_name(make: Maker, sizes: dict[str, int]) -> None:
    env_fns: list[EnvFn] = [functools.partial(PartEpisodes, BOXES)] * N_ENVS
    oracle = NewestOf(DummyVecEnv(env_fns), 3, {"picture": 1, "numbers": 1} | sizes)
    assert_plays_as(make(*env_fns, frame_stack=sizes, n_workers=2), oracle)


def test_stacks_of_one_env_are_those_of_the_vec_env(make: Maker) -> None:
    vec_env, env = make(Parts, frame_stack=FORMAT.stacks), Parts()
    vec_env.seed(3)
    stacks = new_stacks(env.observation_space, FORMAT.stacks)
    stacks.put(0, env.reset(seed=3)[0])
    stacks.begin_episode(0)
    assert_same(stacks.all(), vec_env.reset())
    for _ in range(40):
        frame, _, terminated, truncated, _ = env.step(np.int64(1))
        if over := terminated or truncated:
            frame, _ = env.reset()
        stacks.turn()
        stacks.put(0, frame)
        if over:
            stacks.begin_episode(0)
        assert_same(stacks.all(), vec_env.step(np.array([1]))[0])
    assert stacked_space(env.observation_space, FORMAT.stacks) == FORMAT.space
    assert vec_env.observation_space == FORMAT.space
    assert space_bytes(FORMAT.space) == FORMAT.nbytes


@pytest.mark.parametrize(
    ("space", "frame_stack", "said"),
    [
        (BOXES, {"pictures": 2}, "'pictures', but the parts .* are 'numbers', 'picture'"),
        (IN_PARTS["dict"], 2, "only boxes with an axis can be stacked, but part 'discrete' is"),
        (IN_PARTS["dict"], {"one number": 2}, "but part 'one number' is"),
        (IN_PARTS["tuple"], 2, "only arrays and dicts of arrays can be stacked, not Tuple"),
        (SINGLE["picture"], {"screen": 2}, "frame_stack has parts, but the observations have none"),
    ],
)
def test_what_cannot_be_stacked_is_refused(
    make: Maker, space: spaces.Space[Any], frame_stack: FrameStack, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        make(functools.partial(PartEpisodes, space), frame_stack=frame_stack)


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (spaces.Dict({"it": spaces.Dict(SINGLE)}), "part 'it' of the observations, Dict"),
        (spaces.Tuple((SINGLE["numbers"], spaces.Text(3))), "part 1 of the observations, Text"),
        (spaces.Text(3), "observations, Text"),
    ],
)
def test_what_is_not_an_array_is_refused_with_its_part(
    make: Maker, space: spaces.Space[Any], said: str
) -> None:
    """SB3 does not support parts within parts either."""
    with pytest.raises(TypeError, match=f"{said}.* is not one array of a fixed shape"):
        make(functools.partial(PartEpisodes, space))


# ---------------------------------------------------------------------- what does not fit


PICTURE, NUMBERS = np.zeros((2, 3, 4), np.uint8), np.zeros(5, np.float32)


@pytest.mark.parametrize("where", ["reset", "step", "last"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (PICTURE, "the observation is a ndarray, its space says a dict of 'numbers', 'picture'"),
        ({"picture": PICTURE}, "lacks the part 'numbers', its space says 'numbers', 'picture'"),
        ({"picture": PICTURE, "numbers": NUMBERS, "x": 1}, "has the part 'x', its space"),
        (
            {"picture": PICTURE, "numbers": NUMBERS[:4]},
            r"part 'numbers' of the observation is float32 \(4,\), its space says float32 \(5,\)",
        ),
        (
            {"picture": PICTURE.astype(int), "numbers": NUMBERS},
            r"part 'picture' of the observation is int64 \(2, 3, 4\), its space says uint8",
        ),
    ],
)
def test_an_observation_that_does_not_fit_is_an_error_that_names_the_part(
    make: Maker, where: str, wrong: Any, said: str
) -> None:
    assert_refused(make, BOXES, where, wrong, said)


@pytest.mark.parametrize("where", ["reset", "step", "last"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([PICTURE, NUMBERS], "the observation is a list, its space says a tuple of 2"),
        ((PICTURE,), "the observation is a tuple of 1, its space says a tuple of 2"),
        ((PICTURE, NUMBERS[None]), r"part 1 of the observation is float32 \(1, 5\)"),
    ],
)
def test_a_tuple_that_does_not_fit_too(make: Maker, where: str, wrong: Any, said: str) -> None:
    assert_refused(make, spaces.Tuple(BOXES[n] for n in ("picture", "numbers")), where, wrong, said)


def assert_refused(
    make: Maker, space: spaces.Space[Any], where: str, wrong: Any, said: str
) -> None:
    vec_env = make(
        functools.partial(PartEpisodes, space, spaces.Discrete(2)),
        functools.partial(Unfit, space, wrong, where),
    )
    with pytest.raises(WorkerError, match=f"env 1 raised ValueError: .*{said}"):
        one_step(vec_env)


def one_step(vec_env: VecEnv) -> None:
    vec_env.reset()
    vec_env.step(np.zeros(vec_env.num_envs, int))


# ---------------------------------------------------------------------- packed rows


def newest(observations: Any) -> Any:
    """The newest frames, packed one by one."""
    n = len(observations["screen"])
    shapes = {name: part.shape[0] for name, part in FORMAT.frame_space.items()}
    frames = [{name: a[i, -shapes[name] :] for name, a in observations.items()} for i in range(n)]
    return np.stack([FORMAT.pack(frame) for frame in frames])


def reached(outcome: Any) -> Any:
    observations, _, dones, infos = outcome
    rows = newest(observations)
    for env in np.flatnonzero(dones):
        last = infos[env]["terminal_observation"]
        rows[env] = newest({name: array[None] for name, array in last.items()})[0]
    return rows


@pytest.mark.parametrize("n_workers", [1, 2])
def test_workers_pack_the_newest_frames_and_the_last_ones_of_episodes(
    make: Maker, n_workers: int
) -> None:
    vec_env = make(*[Parts] * 5, frame_stack=FORMAT.stacks, packing=FORMAT, n_workers=n_workers)
    observations, n_ended = vec_env.reset(), 0
    assert vec_env.packed_frames is not None
    np.testing.assert_array_equal(vec_env.packed_frames.shown, newest(observations))
    for _ in range(60):
        outcome = vec_env.step(np.zeros(5, int))
        frames = vec_env.packed_frames
        np.testing.assert_array_equal(frames.shown, newest(outcome[0]))
        np.testing.assert_array_equal(frames.reached, reached(outcome))
        n_ended += int(np.count_nonzero(outcome[2]))
    assert n_ended > 30


@pytest.mark.parametrize("where", ["first", "later", "last"])
@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("status", 0.5, "part status of an observation: a value is 0.5, not a whole .* to 1"),
        ("grid", 4, "part grid of an observation: a value is 4, not a whole number from 0 to 3"),
        ("screen", 99, "a frame has a pixel of 99, .*; if the game shows .* set hardware: cgb"),
    ],
)
def test_a_value_that_cannot_be_packed_is_an_error_that_names_its_env_and_part(
    make: Maker, part: str, value: float, where: str, said: str
) -> None:
    env_fns = [Parts, Parts, functools.partial(Stained, part, value, where)]
    vec_env = make(*env_fns, packing=FORMAT, n_workers=2)
    with pytest.raises(WorkerError, match=f"env 2 raised ValueError: {said}") as found:
        one_step(vec_env)
    assert ("cgb" in str(found.value)) == (part == "screen")


def test_a_packing_of_other_parts_is_refused(make: Maker) -> None:
    other = ObservationFormat(FORMAT.screen, 3, FORMAT.parts[:2])
    with pytest.raises(ValueError, match=r"the packing is for frames Dict\(.*, not Dict\("):
        make(Parts, packing=other)
    with pytest.raises(ValueError, match=r"the packing is for frames \(1, 6, 4\), not None"):
        make(Parts, packing=ObservationFormat(FORMAT.screen, 3))
    with pytest.raises(ValueError, match=r"the packing is for frames Dict\(.*, not Box\("):
        make(functools.partial(PartEpisodes, SINGLE["picture"]), packing=FORMAT)


def test_observations_may_have_no_screen(make: Maker) -> None:
    blind = ObservationFormat(None, 3, FORMAT.parts)
    env_fn = functools.partial(PartEpisodes, blind.frame_space)
    vec_env = make(*[env_fn] * 2, frame_stack=blind.stacks)
    assert list(vec_env.reset()) == ["grid", "recent", "status"]
    assert vec_env.observation_space == blind.space
    assert vec_env.packed_frames is None


# ---------------------------------------------------------------------- halves


def halves(sizes: tuple[int, int] = (2, 1)) -> HalvedVecEnv:
    parts = (
        SharedMemoryVecEnv([Parts] * n, n_workers=1, frame_stack=FORMAT.stacks, packing=FORMAT)
        for n in sizes
    )
    return HalvedVecEnv(*parts)


def test_two_halves_play_as_one_vec_env(make: Maker) -> None:
    whole = make(*[Parts] * N_ENVS, frame_stack=FORMAT.stacks)
    with closing(halves()) as vec_env:
        assert vec_env.packing == FORMAT
        assert assert_plays_as(vec_env, whole) > 15


def test_tuples_of_halves_are_joined_too(make: Maker) -> None:
    env_fns: list[EnvFn] = [functools.partial(PartEpisodes, IN_PARTS["tuple"])] * N_ENVS
    with closing(HalvedVecEnv(make(*env_fns[:2]), make(*env_fns[2:]))) as vec_env:
        assert_plays_as(vec_env, make(*env_fns))


def test_halves_write_their_rows_into_one_batch_of_each_part() -> None:
    with closing(halves()) as vec_env:
        vec_env.reset()
        for _ in range(5):
            outcomes = []
            for half in vec_env.halves:
                half.step_async(np.zeros(half.num_envs, int))
                outcomes.append(half.step_wait())
            observations = vec_env.joined(*outcomes)[0]
            for name, array in observations.items():
                assert outcomes[0][0][name].base is array
                assert outcomes[1][0][name].base is array


def test_rows_of_halves_are_joined_and_belong_to_the_newest_observations_alone() -> None:
    with closing(halves()) as vec_env:
        before, held = vec_env.reset(), []
        for _ in range(60):
            outcome: Any = vec_env.step(np.zeros(3, int))
            frames = vec_env.packed_frames(outcome[0])
            assert frames is not None
            assert vec_env.packed_frames(before) is None
            assert vec_env.packed_frames(dict(outcome[0])) is None
            held.append((frames, newest(outcome[0]), reached(outcome)))
            before = outcome[0]
    for frames, shown, ends in held:
        np.testing.assert_array_equal(frames.shown, shown)
        np.testing.assert_array_equal(frames.reached, ends)


# ---------------------------------------------------------------------- deaths


@pytest.mark.parametrize("number", [0, 1])
def test_an_episode_that_a_dead_worker_ends_ends_with_what_was_seen_last(number: int) -> None:
    with closing(halves()) as vec_env:
        vec_env.seed(0)
        vec_env.reset()
        for _ in range(5):
            observations: Any = vec_env.step(np.zeros(3, int))[0]
        vec_env.processes[number].kill()
        vec_env.processes[number].join()
        outcome = vec_env.step(np.zeros(3, int))
        for env in [0, 1] if number == 0 else [2]:
            last = outcome[3][env]["terminal_observation"]
            assert outcome[2][env]
            assert outcome[3][env]["worker_restarted"]
            assert_same(last, {name: array[env] for name, array in observations.items()})
        frames = vec_env.packed_frames(outcome[0])
        assert frames is not None
        np.testing.assert_array_equal(frames.reached, reached(outcome))
        np.testing.assert_array_equal(frames.shown, newest(outcome[0]))
