"""The files of logged episodes beside a list in memory: sessions, resumes, torn ends, the limit."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.episode_starts import PoolBeginning
from game_rl.episodes.button_log import EpisodeLog
from game_rl.episodes.episode_files import (
    KINDS,
    ROW,
    Cut,
    EndedEpisode,
    EpisodeWriter,
    Kind,
    PlayedUnder,
    blocks_of,
    segments_in,
)
from game_rl.episodes.logged_episodes import (
    EpisodeChoice,
    LoggedEpisode,
    LoggedEpisodes,
    read_episodes_of,
)
from game_rl.errors import UsageError

UNDER = PlayedUnder(
    config={"env": {"n_envs": 2}}, game={"title": "Fake"}, rom_sha256="ab" * 32, versions={}
)
Added = tuple[EndedEpisode, int, Kind, bool]

logs = st.builds(
    EpisodeLog,
    start_state=st.sampled_from(["level_1", "level_2", "höhle"]),
    idle_frames=st.integers(0, 99),
    game_seed=st.integers(0, 2**32 - 1),
    timesteps=st.integers(0, 2**20),
    played=st.binary(max_size=40),
    chosen=st.binary(max_size=40),
    game_reward=st.floats(-1e9, 1e9),
    fault=st.sampled_from(["", "", "why not"]),
    beginning=st.none()
    | st.builds(  # a number stands for one state
        lambda number: PoolBeginning(number, bytes([number]) * 50, "level_2", number / 7, number),
        st.integers(0, 4),
    ),
)
episodes = st.builds(
    EndedEpisode,
    env=st.integers(0, 3),
    length=st.integers(1, 1_000),
    reward=st.floats(-100, 100, width=32),
    success=st.sampled_from([None, True, False]),
    terminated=st.booleans(),
    ending=st.sampled_from(["over", "(limit)"]),
    log=logs,
)
kinds = st.sampled_from(KINDS)


@st.composite
def sessions(draw: Any) -> list[tuple[Cut | None, list[tuple[Added, bool]], int]]:
    """Sessions: what each cuts, its episodes in order with whether it writes, torn bytes."""
    found, at = [], 0
    for number in range(draw(st.integers(1, 4))):
        cut = Cut(timesteps=-1)
        if number:
            at = draw(st.integers(0, at))
            cut = Cut(timesteps=at, evaluation_due=draw(st.booleans()))
        added = []
        for _ in range(draw(st.integers(0, 6))):
            at += draw(st.integers(0, 5))
            added.append(
                ((draw(episodes), at, draw(kinds), draw(st.booleans())), draw(st.booleans()))
            )
        found.append((cut, added, draw(st.integers(0, 30))))
    return found


def kept_after(cut: Cut, before: list[tuple[int, Added]]) -> list[tuple[int, Added]]:
    """What a resume keeps, said once more: no later episode, and no final evaluation there."""
    due: tuple[str, ...] = ("final", "evaluation") if cut.evaluation_due else ("final",)
    return [
        (number, added)
        for number, added in before
        if added[1] < cut.timesteps or (added[1] == cut.timesteps and added[2] not in due)
    ]


def as_added(found: LoggedEpisodes) -> list[tuple[int, Added]]:
    return [
        (
            e.number,
            (
                EndedEpisode(
                    e.env, e.length, e.reward, e.success, e.terminated, e.ending, found.log(i)
                ),
                e.timesteps,
                e.kind,
                e.deterministic,
            ),
        )
        for i, e in enumerate(found)
    ]


def without_lost_actions(number: int, added: Added) -> tuple[int, Added]:
    episode, *others = added
    if episode.log.fault:  # its actions are of no use
        log = replace(episode.log, played=b"", chosen=b"", beginning=None)
        episode = replace(episode, log=log)
    return number, (episode, *others)  # type: ignore[return-value]


def writer(folder: Path, cut: Cut | None, *, limit_bytes: int = 10**6) -> EpisodeWriter:
    kept = read_episodes_of(folder, cut=cut)
    last = max((episode.number for episode in kept), default=0)
    under = UNDER.model_copy(update={"cut": cut})
    made = EpisodeWriter(folder, limit_bytes=limit_bytes, under=under, next_number=last + 1)
    made.begin()
    return made


def add(to: EpisodeWriter, added: Added) -> None:
    episode, timesteps, kind, deterministic = added
    to.add(episode, timesteps=timesteps, kind=kind, deterministic=deterministic)


@given(sessions())
def test_what_is_read_is_what_was_written_and_not_superseded(
    tmp_path_factory: pytest.TempPathFactory, played: Any
) -> None:
    folder = tmp_path_factory.mktemp("run") / "episodes"
    expected: list[tuple[int, Added]] = []
    for cut, added, n_torn in played:
        expected = kept_after(cut, expected)
        to, waiting = writer(folder, cut), []
        next_number = expected[-1][0] + 1 if expected else 1
        for number, (each, writes) in enumerate(added, next_number):
            add(to, each)
            waiting.append((number, each))
            if writes:
                to.write()
                expected += waiting
                waiting = []
        to._leave_segment()  # killed: what it had not written is lost, its last write may be torn
        with segments_in(folder)[-1].open("ab") as file:
            file.write(b"GRE1" + b"\xff" * n_torn if n_torn else b"")
        assert as_added(read_episodes_of(folder)) == [without_lost_actions(*e) for e in expected]


@given(st.lists(episodes, min_size=1, max_size=5), st.data())
def test_a_block_that_is_torn_anywhere_is_left_out_alone(
    tmp_path_factory: pytest.TempPathFactory, played: list[EndedEpisode], data: Any
) -> None:
    folder = tmp_path_factory.mktemp("run") / "episodes"
    to, ends = writer(folder, Cut(timesteps=-1)), []
    (segment,) = segments_in(folder)
    for episode in played:
        add(to, (episode, 1, "training", False))
        to.write()
        ends.append(segment.stat().st_size)
    to.close()
    size = data.draw(st.integers(0, ends[-1]))
    os.truncate(segment, size)
    assert len(read_episodes_of(folder)) == sum(end <= size for end in ends)


def test_the_oldest_segments_go_so_that_all_stay_within_the_limit(tmp_path: Path) -> None:
    rng, limit = np.random.default_rng(0), 400_000
    to = writer(tmp_path, Cut(timesteps=-1), limit_bytes=limit)
    log = EpisodeLog("level_1", 0, 0, 20_000, b"", b"", 0.0)
    for number in range(1, 101):
        actions = rng.integers(0, 256, 20_000, np.uint8).tobytes()  # they do not compress
        episode = EndedEpisode(0, 20_000, 0.0, None, True, "over", replace(log, played=actions))
        add(to, (episode, number, "training", False))
        to.write()
        assert sum(path.stat().st_size for path in segments_in(tmp_path)) <= limit
    to.close()
    found = read_episodes_of(tmp_path)
    numbers = [episode.number for episode in found]
    assert numbers == list(range(numbers[0], 101))
    assert 12 <= len(numbers) <= 20
    assert found.log(len(found) - 1).played == actions
    with pytest.raises(UsageError, match=f"no episode 1; those from {numbers[0]} to 100 are kept"):
        found.numbered([1])


def state_numbers(segment: Path) -> list[int]:
    return [state.number for block in blocks_of(segment) for state in block.states]


def test_each_segment_has_the_states_of_its_episodes_once(tmp_path: Path) -> None:
    rng, limit = np.random.default_rng(0), 1_600_000
    to = writer(tmp_path, Cut(timesteps=-1), limit_bytes=limit)
    states = [PoolBeginning(n, rng.bytes(4_000), "level_1", 0.0, n) for n in range(12)]
    log = EpisodeLog("(pool)", 0, 0, 2_000, b"", b"", 0.0)
    added = []
    for number in range(1, 501):
        played = rng.bytes(2_000)
        own = replace(log, played=played, beginning=states[number % (5 if number < 250 else 12)])
        added.append(own)
        add(to, (EndedEpisode(0, 2_000, 0.0, None, True, "over", own), number, "training", False))
        if number % 7 == 0:
            to.write()
    to.close()
    segments = segments_in(tmp_path)
    assert len(segments) > 8
    for segment in segments:
        numbers = state_numbers(segment)
        assert len(set(numbers)) == len(numbers) in (5, 12)
    found = read_episodes_of(tmp_path)
    assert [found.log(index) for index in range(len(found))] == added[-len(found) :]
    assert {found[0].pool_state, found[1].pool_state} <= set(range(12))


def test_states_make_a_block_due_and_one_that_has_too_many_is_listed_without_them(
    tmp_path: Path,
) -> None:
    to = writer(tmp_path, Cut(timesteps=-1), limit_bytes=200_000)
    log = EpisodeLog("(pool)", 0, 0, 1, b"\x01", b"", 0.0)
    rng = np.random.default_rng(0)
    added = []
    for number in range(27):
        own = replace(log, beginning=PoolBeginning(number, rng.bytes(10_000), "level_1", 0.0, 1))
        assert not to.is_full
        added.append(EndedEpisode(0, 1, 0.0, None, True, "over", own))
        add(to, (added[-1], 1, "training", False))
    assert to.is_full
    to.write()
    add(to, (added[0], 2, "training", False))
    to.close()
    found = read_episodes_of(tmp_path)
    assert {"episodes.limit_mb" in episode.fault for episode in found[:27]} == {True}
    assert found.log(27) == added[0].log


def test_a_state_that_is_damaged_on_the_disk_is_said_to_be(tmp_path: Path) -> None:
    to = writer(tmp_path, Cut(timesteps=-1))
    log = EpisodeLog("(pool)", 0, 0, 1, b"\x01", b"", 0.0)
    own = replace(log, beginning=PoolBeginning(3, bytes(range(200)), "level_1", 0.0, 1))
    added: Added = (EndedEpisode(0, 1, 0.0, None, True, "over", own), 1, "training", False)
    add(to, added)
    to.write()
    (segment,) = segments_in(tmp_path)
    size = segment.stat().st_size
    add(to, added)
    to.close()
    data = bytearray(segment.read_bytes())
    data[size - 1] ^= 1
    segment.write_bytes(bytes(data))
    found = read_episodes_of(tmp_path)
    assert "damaged" in found.log(1).fault


def test_a_log_of_before_there_were_pools_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = writer(tmp_path, Cut(timesteps=-1))
    log = EpisodeLog("level_1", 0, 0, 3, b"\x01\x02\x03", b"", 0.0)
    add(to, (EndedEpisode(0, 3, 1.5, None, True, "over", log), 5, "training", False))
    with monkeypatch.context() as patch:
        former = np.dtype([each for each in ROW.descr if each[0] != "pool_state"])
        rows = [row[:-1] for row in to._rows]
        to._rows = rows
        patch.setattr("game_rl.episodes.episode_files.ROW", former)
        to.close()
    found = read_episodes_of(tmp_path)
    assert (found[0].pool_state, found.log(0)) == (None, log)


def test_a_block_is_due_after_262144_actions(tmp_path: Path) -> None:
    to = writer(tmp_path, Cut(timesteps=-1))
    log = EpisodeLog("level_1", 0, 0, 2**16, bytes(2**16), b"", 0.0)
    due = []
    for number in range(4):
        episode = EndedEpisode(0, 2**16, 0.0, None, True, "over", log)
        add(to, (episode, number, "training", False))
        due.append(to.is_full)
    to.close()
    assert due == [False, False, False, True]


def test_an_episode_that_is_longer_than_the_limit_is_listed_without_its_actions(
    tmp_path: Path,
) -> None:
    to = writer(tmp_path, Cut(timesteps=-1), limit_bytes=20_000)
    actions = np.random.default_rng(0).integers(0, 256, 20_000, np.uint8).tobytes()
    log = EpisodeLog("level_1", 0, 0, 20_000, actions, b"", 0.0)
    add(to, (EndedEpisode(0, 20_000, 1.5, None, True, "over", log), 5, "training", False))
    to.close()
    (episode,) = read_episodes_of(tmp_path)
    assert (episode.number, episode.reward, episode.length) == (1, 1.5, 20_000)
    assert "episodes.limit_mb" in episode.fault


def test_actions_that_are_damaged_on_the_disk_are_said_to_be(tmp_path: Path) -> None:
    to = writer(tmp_path, Cut(timesteps=-1))
    log = EpisodeLog("level_1", 0, 0, 3, b"\x01\x02\x03", b"", 0.0)
    add(to, (EndedEpisode(0, 3, 1.5, None, True, "over", log), 5, "training", False))
    to.close()
    (segment,) = segments_in(tmp_path)
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(bytes(data))
    found = read_episodes_of(tmp_path)
    assert not found[0].fault
    assert "damaged" in found.log(0).fault
    segment.unlink()
    assert "has been deleted since" in found.log(0).fault


def test_a_segment_of_another_version_is_named(tmp_path: Path) -> None:
    to = writer(tmp_path, Cut(timesteps=-1))
    to._under = UNDER.model_copy(update={"format": 2})
    to._leave_segment()
    to.begin()
    to.close()
    with pytest.raises(UsageError, match=r"000001.episodes cannot be read: format: .* or delete"):
        read_episodes_of(tmp_path)


def test_after_a_disk_was_full_a_sync_begins_a_new_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = writer(tmp_path, Cut(timesteps=-1))
    log = EpisodeLog("level_1", 0, 0, 3, b"\x01\x02\x03", b"", 0.0)
    added: Added = (EndedEpisode(0, 3, 1.5, None, True, "over", log), 5, "training", False)
    add(to, added)
    to.write()
    whole = EpisodeWriter._write

    def torn(self: EpisodeWriter, data: bytes) -> None:
        whole(self, data[:9])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(EpisodeWriter, "_write", torn)
        for failing in (to.write, to.sync):
            add(to, added)
            with pytest.raises(OSError, match="No space left"):
                failing()
            assert to.is_failing
        add(to, added)
        to.write()  # dropped without another try
    assert to.dropped == 3
    add(to, added)
    to.sync()
    to.close()
    assert [episode.number for episode in read_episodes_of(tmp_path)] == [1, 5]


def naive_choice(found: list[LoggedEpisode], choice: EpisodeChoice) -> list[int]:
    def fits(episode: LoggedEpisode) -> bool:
        return (
            episode.kind in choice.kinds
            and (choice.first is None or episode.timesteps >= choice.first)
            and (choice.last is None or episode.timesteps <= choice.last)
            and (choice.start_states is None or episode.start_state in choice.start_states)
            and not (choice.only_playable and episode.fault)
        )

    left = [episode for episode in found if fits(episode)]
    if not (choice.best or choice.worst):
        return [episode.number for episode in left[: choice.most]]
    groups: dict[tuple[int, ...], list[LoggedEpisode]] = {}
    for episode in left:
        moment = (episode.timesteps, KINDS.index(episode.kind))
        groups.setdefault(() if "training" in choice.kinds else moment, []).append(episode)
    numbers: list[int] = []
    for key in sorted(groups):
        best = sorted(groups[key], key=lambda e: (-e.reward, e.number))[: choice.most]
        worst = sorted(groups[key], key=lambda e: (e.reward, e.number))[: choice.most]
        numbers += [e.number for e in best if choice.best]
        numbers += [e.number for e in worst if choice.worst]
    return numbers


@given(
    st.lists(st.tuples(episodes, st.integers(0, 9), kinds, st.booleans()), max_size=12),
    st.builds(
        EpisodeChoice,
        kinds=st.sampled_from([("training",), ("evaluation", "final"), KINDS]),
        first=st.none() | st.integers(0, 9),
        last=st.none() | st.integers(0, 9),
        start_states=st.none() | st.just(("level_1", "nowhere")),
        best=st.booleans(),
        worst=st.booleans(),
        most=st.none() | st.integers(1, 3),
        only_playable=st.booleans(),
    ),
)
def test_a_choice_is_what_sorting_one_by_one_gives(
    tmp_path_factory: pytest.TempPathFactory, played: list[Added], choice: EpisodeChoice
) -> None:
    folder = tmp_path_factory.mktemp("run")
    to = writer(folder, Cut(timesteps=-1))
    for added in played:
        add(to, added)
    to.close()
    found = read_episodes_of(folder)
    chosen = choice.of(found)
    assert [episode.number for episode in chosen] == naive_choice(list(found), choice)
    assert [chosen.log(i) for i in range(len(chosen))] == [
        found.log(episode.number - 1) for episode in chosen
    ]


def test_timesteps_count_over_all_envs(tmp_path: Path) -> None:
    to = writer(tmp_path, Cut(timesteps=-1))
    log = EpisodeLog("level_1", 0, 0, 3, b"\x01\x02\x03", b"", 0.0)
    episode = EndedEpisode(0, 3, 1.5, None, True, "over", log)
    for kind in KINDS:
        add(to, (episode, 10, kind, False))
    to.close()
    found = read_episodes_of(tmp_path)
    assert [e.first_timestep for e in found] == [4, 10, 10]
    assert [e.to_json()["kind"] for e in found[1:]] == ["evaluation", "final"]
