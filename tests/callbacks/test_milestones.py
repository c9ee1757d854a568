"""The first timesteps at which a run reaches something, over all envs and over a resume."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks import milestones
from game_rl.callbacks.milestones import MilestonesCallback
from game_rl.envs.episode_progress import MILESTONES, NewMilestone
from game_rl.events import Begun, Event, MilestoneReached, Resumed
from game_rl.events.event_log import EventFile, EventLog, read_events
from game_rl.events.run_view import milestone_rows
from game_rl.files.run_dir import RunDir
from tests.callbacks.conftest import make_checkpoints

Infos = list[dict[str, Any]]


class _Logger:
    def __init__(self) -> None:
        self.values: list[tuple[str, int]] = []

    def record(self, name: str, value: int) -> None:
        self.values.append((name, value))


class _Model:
    """What a callback asks of a model."""

    num_timesteps = 0

    def __init__(self) -> None:
        self.logger = _Logger()

    def get_env(self) -> None:
        return None


def play(callback: BaseCallback, rollouts: list[list[Infos]], *, first_timesteps: int = 0) -> Any:
    """Call the callback as a training does, and return the model."""
    model: Any = _Model()
    model.num_timesteps = first_timesteps
    callback.init_callback(model)
    callback.on_training_start({}, {})
    for vec_steps in rollouts:
        callback.on_rollout_start()
        for infos in vec_steps:
            model.num_timesteps += len(infos)
            callback.update_locals({"infos": infos})
            callback.on_step()
        callback.on_rollout_end()
    return model


def made(run_dir: RunDir, events: EventLog) -> MilestonesCallback:
    return MilestonesCallback(events, run_dir, make_checkpoints(run_dir, 1_000))


def reached(events: list[Event]) -> list[tuple[int, str, float | None]]:
    return [(e.timesteps, e.name, e.value) for e in events if isinstance(e, MilestoneReached)]


PLACE = st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9))
INFO = st.fixed_dictionaries(
    {},
    optional={
        MILESTONES: st.lists(
            st.one_of(
                st.builds(
                    NewMilestone, st.just("reward_term"), st.sampled_from("ab"), st.none(), PLACE
                ),
                st.builds(
                    NewMilestone,
                    st.just("variable"),
                    st.sampled_from("xy"),
                    st.integers(1, 50),
                    PLACE,
                ),
            ),
            max_size=2,
        ),
        "is_success": st.booleans(),
        "start_state": st.sampled_from(["one", "two"]),
    },
)
ROLLOUTS = st.lists(
    st.lists(st.lists(INFO, min_size=2, max_size=2), min_size=1, max_size=3), max_size=6
)


def by_hand(rollouts: list[list[Infos]]) -> list[tuple[int, str, float | None]]:
    """Look back at everything before for each thing that an env tells."""
    found: list[tuple[int, str, float | None]] = []
    for number, infos in enumerate((infos for rollout in rollouts for infos in rollout), start=1):
        for info in infos:
            told = [(m.name, m.value) for m in info.get(MILESTONES, ())]
            if info.get("is_success") and "start_state" in info:
                told.append((info["start_state"], None))
            for name, value in told:
                before = [v for _, n, v in found if n == name]
                is_high = value is not None and all(
                    v is not None and value > v and value - v >= v / 20 for v in before
                )
                if not before or is_high:
                    found.append((2 * number, name, value))
    return found


@given(ROLLOUTS, st.integers(0, 6))
def test_each_is_reported_once_also_by_a_run_that_is_resumed(
    tmp_path_factory: pytest.TempPathFactory, rollouts: list[list[Infos]], cut: int
) -> None:
    run_dir = RunDir(tmp_path_factory.mktemp("run"))
    before, after = rollouts[:cut], rollouts[cut:]
    timesteps = 2 * sum(len(rollout) for rollout in before)
    with EventFile(run_dir.events) as file:
        log = EventLog(file)
        play(made(run_dir, log), before)
        n_bytes = log.n_bytes()
        play(made(run_dir, log), after, first_timesteps=timesteps)  # lost by a kill
        log.emit(resumed(timesteps, n_bytes))
        model = play(made(run_dir, log), after, first_timesteps=timesteps)
    expected = by_hand(rollouts)
    assert reached(read_events(run_dir)) == expected
    if after:
        assert model.logger.values[-1] == ("milestones/reached", len(expected))


def resumed(timesteps: int, n_bytes: int) -> Resumed:
    return Resumed(
        timesteps=timesteps,
        run="r",
        checkpoint="c",
        total_timesteps=100,
        frame_skip=8,
        device="cpu",
        precision="float32",
        superseded_from_bytes=n_bytes,
        restored=(),
    )


def test_a_rollout_that_did_not_end_has_reached_nothing(run_dir: RunDir) -> None:
    heard: list[Event] = []
    callback = made(run_dir, EventLog(listeners=[heard.append]))
    term = [{MILESTONES: [NewMilestone("reward_term", "a")]}, {}]
    model = play(callback, [])
    callback.update_locals({"infos": term})
    callback.on_step()
    assert not heard
    callback.on_training_start({}, {})
    model.num_timesteps = 4
    callback.update_locals({"infos": [{}, {}]})
    callback.on_step()
    callback.on_rollout_end()
    assert not heard


def test_there_is_a_limit(run_dir: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milestones, "MOST_MILESTONES", 3)
    heard: list[Event] = []
    many = [NewMilestone("variable", f"flags[{n}]", 1) for n in range(9)]
    play(made(run_dir, EventLog(listeners=[heard.append])), [[[{MILESTONES: many}]]])
    assert len(heard) == 3


def test_rows_have_frames_and_the_last_maximum() -> None:
    begun = Begun(
        run="r", algorithm="ppo", total_timesteps=9, frame_skip=8, device="cpu", precision="float32"
    )

    def event(timesteps: int, value: int, waited: int | None = None) -> MilestoneReached:
        return MilestoneReached(
            timesteps=timesteps,
            waited_frames=waited,
            kind="variable",
            name="badges",
            value=value,
            text=f"badges reached {value}",
            hours=timesteps / 100,
        )

    events: list[Event] = [begun, event(4, 1), event(10, 2, waited=7)]
    assert [(row.text, row.frame, row.hours) for row in milestone_rows(events)] == [
        ("badges reached 1", 32, 0.04),
        ("badges reached 2", 87, 0.1),
    ]
    assert [row.value for row in milestone_rows(events, is_newest=True)] == [2]
    assert milestone_rows(events[1:])[0].frame is None


def test_a_success_from_a_pool_is_no_start_states(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    events: list[Event] = []
    callback = made(run_dir, EventLog(listeners=[events.append]))
    play(callback, [[[{"is_success": True, "start_state": "(pool)", "pool_state": 3}]]])
    texts = [event.text for event in events if isinstance(event, MilestoneReached)]
    assert texts == ["won from a state of the pool for the first time"]
