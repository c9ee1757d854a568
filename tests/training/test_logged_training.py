"""Trainings log their episodes: each plays again exactly, through resumes, kills and full disks."""

import errno
import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks import hints
from game_rl.checkpoints.named import open_run
from game_rl.cli.main import main
from game_rl.config.loader import dump_config
from game_rl.config.schema import RunConfig
from game_rl.episodes.episode_files import EpisodeWriter, segments_in
from game_rl.episodes.episode_logging import EpisodeLogger
from game_rl.episodes.logged_episodes import LoggedEpisodes, read_logged_episodes
from game_rl.errors import ReplayError
from game_rl.events import Evaluated, HintGiven, Warned
from game_rl.events.event_log import EventFile, EventLog, read_events
from game_rl.events.training_hints import Hint, Training
from game_rl.files.durable_files import folder_bytes
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.playback.episode_replay import replayed
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from tests.tiny_run import TINY_GAME, MakeConfig, command, train_once
from tests.training.forks import fork_of, quiet
from tests.training.test_resuming import rewrite

STICKY = ("env.sticky_actions=0.4", "env.n_envs=3", "env.start_states=null", "seed=3")
ROLLOUT = 32


def run(config: RunConfig, until: int | None = None) -> RunDir:
    train(config, command(quiet(), until=until))
    return RunDir(config.run_dir)


def play_all(run_dir: RunDir) -> LoggedEpisodes:
    """Play every logged episode again; each raises if it is not as it was."""
    game, found = load_game(open_run(run_dir.root)[1].game), read_logged_episodes(run_dir)
    for index in range(len(found)):
        shown = list(replayed(found, index, game, hold=1).timesteps)
        assert len(shown) == found[index].game_timesteps + 1
        assert shown[-1].reward == found[index].reward
    return found


def facts(run_dir: RunDir) -> list[dict[str, object]]:
    return [episode.to_json() for episode in read_logged_episodes(run_dir)]


def actions(run_dir: RunDir) -> list[bytes]:
    found = read_logged_episodes(run_dir)
    return [found.log(index).played for index in range(len(found))]


def weights(run_dir: RunDir) -> bytes:
    newest = run_dir.checkpoints_newest_first()[0]
    return (newest / "policy.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("changes", [(), STICKY, ("env.n_workers=2", "algorithm.name=pqn")])
def test_every_episode_of_a_run_plays_again_exactly(
    make_config: MakeConfig, changes: tuple[str, ...]
) -> None:
    run_dir = train_once(make_config("run", *changes))
    found = play_all(run_dir)
    n_envs = found[0].under.n_envs
    training = [episode for episode in found if episode.kind == "training"]
    assert [episode.number for episode in found] == list(range(1, len(found) + 1))
    assert len(training) >= n_envs * (192 // n_envs // 25)
    for event in read_events(run_dir):
        if isinstance(event, Evaluated):
            kind = "final" if event.is_final else "evaluation"
            own = [e for e in found if (e.kind, e.timesteps) == (kind, event.timesteps)]
            assert len(own) == event.episodes
            assert float(np.mean([e.reward for e in own])) == pytest.approx(event.mean_reward)
            assert all(episode.deterministic for episode in own)


@pytest.mark.slow
def test_a_run_that_logs_nothing_learns_the_same(make_config: MakeConfig) -> None:
    logged = train_once(make_config("logged"))
    not_logged = train_once(make_config("not_logged", "episodes=null"))
    assert weights(logged) == weights(not_logged)
    assert not not_logged.episodes.exists()
    plays = [(d.checkpoints_newest_first()[0] / "play.json") for d in (logged, not_logged)]
    ours, theirs = (json.loads(path.read_text(encoding="utf-8")) for path in plays)
    for env in ours["envs"]:
        del env["trackers"]["notes"]
    assert ours["envs"] == theirs["envs"]


def test_the_forecast_of_the_disk_has_the_log(make_config: MakeConfig) -> None:
    run_dir = train_once(make_config("run"))
    plan = json.loads(run_dir.preflight.read_text(encoding="utf-8"))["disk"]["parts"]
    (forecast,) = (part["bytes"] for part in plan if part["name"] == "logged episodes")
    assert folder_bytes(run_dir.episodes) <= forecast <= 4 * folder_bytes(run_dir.episodes)
    without = train_once(make_config("without", "episodes=null"))
    parts = json.loads(without.preflight.read_text(encoding="utf-8"))["disk"]["parts"]
    assert "logged episodes" not in {part["name"] for part in parts}


@pytest.mark.slow
@pytest.mark.parametrize("at", [64, 96, 160])
def test_a_run_that_is_killed_and_resumed_has_the_log_of_one_that_is_not(
    make_config: MakeConfig, at: int
) -> None:
    """Episodes of 25 timesteps do not end where a checkpoint lies, so some go on."""
    changes = ("checkpoints.every_timesteps=32", "checkpoints.keep_last=20", *STICKY[:1])
    whole = train_once(make_config("whole", *changes))
    broken = RunDir(make_config("broken", *changes).run_dir)
    shutil.copytree(whole.root, broken.root)
    for path in broken.checkpoints_newest_first():
        if int(path.name) > at:
            shutil.rmtree(path)
    segments = segments_in(broken.episodes)
    with segments[-1].open("ab") as file:  # what a killed process was writing
        file.write(b"GRE1\x07")
    resume(broken.root, command(quiet()))
    assert facts(broken) == facts(whole)
    assert actions(broken) == actions(whole)
    play_all(broken)


@pytest.mark.slow
def test_a_run_that_an_earlier_version_wrote_keeps_its_log_when_it_is_resumed(
    make_config: MakeConfig,
) -> None:
    """Earlier versions saved what the trackers know beside the env's own state."""
    whole = train_once(make_config("whole"))
    run_dir = run(make_config("run"), until=64)
    before = facts(run_dir)
    play = run_dir.checkpoint(64) / "play.json"
    saved = json.loads(play.read_text(encoding="utf-8"))
    for env in saved["envs"]:
        env.update(env.pop("trackers"))
        assert env["notes"]["played"]  # an episode goes on over the resume
    rewrite(play, play.with_name("manifest.json"), json.dumps(saved))
    resume(run_dir.root, command(quiet()))
    assert facts(run_dir)[: len(before)] == before
    assert facts(run_dir) == facts(whole)
    assert actions(run_dir) == actions(whole)
    assert not any(episode.fault for episode in play_all(run_dir))


@pytest.mark.slow
def test_what_a_run_played_after_its_last_checkpoint_does_not_count_once_it_is_resumed(
    make_config: MakeConfig,
) -> None:
    run_dir = run(make_config(), until=128)
    before = facts(run_dir)
    resume(run_dir.root, command(quiet(), until=160), at=64)
    found = facts(run_dir)
    kept = [each for each in before if each["timesteps"] <= 64]
    assert kept
    assert found[: len(kept)] == kept
    assert max(each["timesteps"] for each in found) <= 160  # type: ignore[type-var]
    play_all(run_dir)


@pytest.mark.slow
def test_a_run_that_begins_again_has_none_of_its_first_episodes(make_config: MakeConfig) -> None:
    config = make_config("run", "checkpoints.every_timesteps=192")
    run_dir = run(config, until=64)
    shutil.rmtree(run_dir.checkpoints)
    resume(run_dir.root, command(quiet(), until=64))
    found = read_logged_episodes(run_dir)
    assert [episode.number for episode in found] == list(range(1, len(found) + 1))
    assert len(segments_in(run_dir.episodes)) == 2


@pytest.mark.slow
def test_an_episode_through_which_the_settings_changed_is_not_played_again(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    game = tmp_path / "game.yaml"
    text = TINY_GAME.read_text(encoding="utf-8")
    root = Path(__file__).parents[2]
    text = text.replace("../../game_rl", str(root / "game_rl"))
    game.write_text(text, encoding="utf-8")
    run_dir = run(make_config("run", f"game={game}"), until=64)
    game.write_text(text.replace("weight: 0.05", "weight: 0.07"), encoding="utf-8")
    resume(run_dir.root, command(quiet(), until=192))
    found = read_logged_episodes(run_dir)
    spoiled = [e for e in found if "changed in the middle" in e.fault]
    assert {e.env for e in spoiled} == {0, 1}
    assert all(e.first_timestep < 64 < e.timesteps for e in spoiled)
    before = [i for i, e in enumerate(found) if e.timesteps <= 64]
    now, texts = load_game(str(game)), []
    for index in before:
        try:
            list(replayed(found, index, now, hold=1).timesteps)
        except ReplayError as error:
            texts.append(str(error))
    assert (bool(texts), ReplayError.exit_code) == (True, 1)
    assert all("rewards.damage_dealt.weight: 0.05 -> 0.07" in text for text in texts)
    later = [i for i, e in enumerate(found) if e.first_timestep > 64]
    for index in later:
        list(replayed(found, index, now, hold=1).timesteps)


@pytest.mark.slow
def test_a_fork_goes_on_with_its_parents_episodes_and_says_if_the_game_is_another(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    game = tmp_path / "game.yaml"
    text = TINY_GAME.read_text(encoding="utf-8")
    text = text.replace("../../game_rl", str(Path(__file__).parents[2] / "game_rl"))
    game.write_text(text, encoding="utf-8")
    parent = run(make_config("parent", f"game={game}"), until=64)
    same = run(fork_of(parent, 64, "same"), until=128)
    found = play_all(same)
    over = [e for e in found if e.kind == "training" and e.first_timestep < 64]
    assert {e.env for e in over} == {0, 1}
    assert all(e.timesteps > 64 and not e.fault for e in over)
    game.write_text(text.replace("weight: 0.05", "weight: 0.07"), encoding="utf-8")
    other = run(fork_of(parent, 64, "other"), until=128)
    faults = {e.number: e.fault for e in read_logged_episodes(other) if e.kind == "training"}
    assert [n for n, fault in faults.items() if "at the fork" in fault] == [1, 2]
    assert set(list(faults.values())[2:]) <= {""}


WRAPPER = """\
import gymnasium


class Twice(gymnasium.Wrapper):
    def step(self, action):
        _, first, terminated, truncated, info = result = self.env.step(action)
        if terminated or truncated:
            return result
        observation, second, terminated, truncated, info = self.env.step(action)
        self.left -= 1
        return observation, 3 * (first + second), terminated or self.left == 0, truncated, info

    def reset(self, **arguments):
        self.left = 8
        return self.env.reset(**arguments)
"""


@pytest.mark.slow
def test_with_a_persons_own_wrapper_the_game_plays_again_as_it_did(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logged_wrappers.py").write_text(WRAPPER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_dir = run(make_config("run", "env.wrappers=[logged_wrappers:Twice]"))
    game, found = load_game(str(TINY_GAME)), read_logged_episodes(run_dir)
    assert {(e.length, e.game_timesteps, e.ending) for e in found} == {(8, 16, "(wrapper)")}
    for index, episode in enumerate(found):
        *_, last = replayed(found, index, game, hold=1).timesteps
        assert 3 * last.reward == pytest.approx(episode.reward, abs=1e-4)
    assert main(["record", str(run_dir.root), "--best", "--overlay"]) == 2  # it sees other things
    assert main(["record", str(run_dir.root), "--best", "--overlay", "action", "reward"]) == 0


# ------------------------------------------------------------------ disks that fail


def full_disk(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.slow
def test_a_disk_that_fails_the_log_of_episodes_does_not_end_the_training(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_once(make_config("whole"))
    monkeypatch.setattr(EpisodeWriter, "_write", full_disk)
    failing = run(make_config("failing"))
    assert weights(failing) == weights(whole)
    warned = [e.text for e in read_events(failing) if isinstance(e, Warned)]
    (text, *others) = [t for t in warned if "episodes are not logged" in t]
    assert "No space left" in text
    assert len(others) <= 1  # that of the final evaluation, which opens the log anew
    assert len(read_logged_episodes(failing)) == 0


@pytest.mark.slow
def test_the_log_goes_on_once_a_checkpoint_finds_the_disk_well(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = EpisodeWriter._write
    left = [4]

    def failing(self: EpisodeWriter, data: bytes) -> None:
        left[0] -= 1
        if left[0] in (1, 2):
            whole(self, data[: len(data) // 2])
            full_disk()
        whole(self, data)

    monkeypatch.setattr(EpisodeWriter, "_write", failing)
    run_dir = run(make_config("run", "checkpoints.every_timesteps=32"))
    warned = [e.text for e in read_events(run_dir) if isinstance(e, Warned)]
    again = [text for text in warned if "logged again" in text]
    assert len(again) == 1
    missing = int(again[0].split("; ")[1].split()[0])
    found = play_all(run_dir)
    assert 0 < missing == found[len(found) - 1].number - len(found)


@pytest.mark.slow
def test_a_disk_that_fails_both_logs_ends_the_training_as_a_failing_events_file_does(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What both say and return is compared: the log of episodes makes nothing worse."""
    ends = []
    for name, breaks in (("events", False), ("both", True)):
        config = make_config(name, "total_timesteps=128", "checkpoints.every_timesteps=64")
        run_dir = run(config, until=64)
        with monkeypatch.context() as patch:
            patch.setattr(EventFile, "add", full_disk)
            if breaks:
                patch.setattr(EpisodeWriter, "_write", full_disk)
            code = main(["train", "--resume", str(run_dir.root), "-q"])
        text = capsys.readouterr().err.replace(name, "RUN")
        ends.append((code, text, sorted(p.name for p in run_dir.checkpoints_newest_first())))
    assert ends[0] == ends[1]
    assert ends[0][0] == 1


def test_a_log_that_cannot_be_opened_is_opened_at_the_next_checkpoint() -> None:
    told: list[str] = []
    tries = [full_disk, full_disk]

    def open_writer() -> EpisodeWriter:
        if tries:
            tries.pop()()
        raise OSError(errno.EROFS, "Read-only file system")

    logger = EpisodeLogger(open_writer, told.append)
    logger.begin()
    for _ in range(3):
        logger.sync()
    logger.write_if_due()
    logger.close()
    assert len(told) == 1


class _Looped(BaseCallback):
    """Keeps the share of each training episode's hops that came in a loop, and its reward."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[tuple[float, float]] = []

    def _on_step(self) -> bool:
        for env in np.flatnonzero(self.locals["dones"]).tolist():
            info = self.locals["infos"][env]
            self.ends.append((info["looped_terms"].get("hop", 0.0), float(info["episode"]["r"])))
        return True


@pytest.mark.slow
def test_the_command_in_a_hint_shows_an_episode_that_it_is_about(
    make_config: MakeConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def about_hops(training: Training) -> Iterator[Hint]:
        if training.share_done > 0.6:
            yield Hint("a_name", "too many hops", "rewards.hop", shown_by="game/looped/hop")

    monkeypatch.setattr(hints, "hints_for", about_hops)
    game = tmp_path / "hops" / "game.yaml"
    game.parent.mkdir()
    bundled = (TINY_GAME.parent / "../../game_rl/games/duel").resolve()
    text = TINY_GAME.read_text(encoding="utf-8").replace("../../game_rl/games/duel", str(bundled))
    pays = "rewards:\n  hop: {variable: player_height, on: increase, weight: 0.25}\n"
    game.write_text(text.replace("rewards:\n", pays), encoding="utf-8")
    config = make_config(
        "run", f"game={game}", "total_timesteps=640", "env.max_episode_timesteps=60"
    )
    run_dir, watched = RunDir(config.run_dir), _Looped()
    run_dir.root.mkdir()
    (run_dir.config).write_text(dump_config(config), encoding="utf-8")
    with (
        EventFile(run_dir.events) as file,
        training_process(),
        TrainingSession(
            config, load_game(config.game), run_dir, events=EventLog(file), more=[watched]
        ) as session,
    ):
        session.learn_until(config.total_timesteps)
    (hint,) = (event for event in read_events(run_dir) if isinstance(event, HintGiven))
    n_before = sum(
        e.timesteps <= hint.timesteps and e.kind == "training"
        for e in read_logged_episodes(run_dir)
    )
    share, reward = max(reversed(watched.ends[:n_before]), key=lambda end: end[0])
    assert share > 0
    assert hint.episode is not None
    (named,) = read_logged_episodes(run_dir).numbered([hint.episode])
    assert named.reward == pytest.approx(reward)
    program, *arguments = shlex.split(hint.text.partition(": ")[2])
    assert program == "game-rl"
    assert main([*arguments, "--output", str(tmp_path / "x.gif")]) == 0, capsys.readouterr().err
    assert (tmp_path / "x.gif").exists()
