"""Trainings of a game with a place: its map is what a second, plain count of all envs says."""

import base64
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from stable_baselines3.common.callbacks import BaseCallback
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, TrainingError
from game_rl.events import Resumed
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.places.joined_maps import joined_maps
from game_rl.places.place_counts import PlaceCounts
from game_rl.places.place_flags import place_flags
from game_rl.places.places_picture import places_picture, read_place_counts
from game_rl.places.screen_map import ScreenMap
from game_rl.training.extensions.places_extension import saved_places
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.viewer.report_sections import places_section
from game_rl.viewer.shown_runs import read_run
from tests.places.test_place_counts import as_counter
from tests.tiny_run import TINY_GAME, MakeConfig, command
from tests.training.forks import FILES, KINDS, fork_of, quiet

PLACE = ("level", "player_x", "player_height")
OFFSETS = {1: (100, -50)}
Places = Counter[tuple[int, ...]]


@pytest.fixture
def game(tmp_path: Path) -> Path:
    """The path of the tiny game with a place."""
    folder = (TINY_GAME.parent / "../../game_rl/games/duel").resolve()
    text = TINY_GAME.read_text(encoding="utf-8").replace("../../game_rl/games/duel", str(folder))
    text += f"\nplace: [{', '.join(PLACE)}]\nplace_offsets: levels.yaml\n"
    (tmp_path / "levels.yaml").write_text("maps: {1: [100, -50]}\n", encoding="utf-8")
    path = tmp_path / "game.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def settings(game: Path, kind: str = "ppo") -> tuple[str, ...]:
    return (
        f"game={game}",
        *KINDS[kind],
        "env.start_states=[level_1, level_2]",
        "checkpoints.every_timesteps=32",
        "checkpoints.keep_last=20",
    )


class OwnCount(BaseCallback):
    """Counts places by asking every env for its variables after every vec step.

    An env whose episode has ended is at the beginning of the next one; its `info` has the values of
    the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_timesteps = {0: Places()}

    def _on_step(self) -> bool:
        now = Places(self.by_timesteps[max(self.by_timesteps)])
        for number, info in enumerate(self.locals["infos"]):
            values = (
                info.get("game")
                or self.training_env.env_method("read_variables", indices=[number])[0]
            )
            now[tuple(values[name] for name in PLACE)] += 1
        self.by_timesteps[self.num_timesteps] = now
        return True


def learn(config: RunConfig, *more: BaseCallback) -> RunDir:
    config.run_dir.mkdir(exist_ok=True)
    run_dir = RunDir(config.run_dir)
    with (
        training_process(),
        TrainingSession(config, load_game(config.game), run_dir, more=more) as session,
    ):
        session.learn_until(config.total_timesteps)
    return run_dir


def saved(run_dir: RunDir, timesteps: int) -> PlaceCounts:
    found = saved_places(Checkpoint(run_dir.checkpoint(timesteps)))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_counts_every_timestep_of_all_envs_also_if_it_was_stopped_and_resumed(
    make_config: MakeConfig, game: Path, kind: str
) -> None:
    own = OwnCount()
    whole = learn(make_config("whole", *settings(game, kind)), own)
    counts = read_place_counts(whole)
    assert as_counter(counts) == own.by_timesteps[192]
    assert (counts.names, counts.offsets, counts.since) == (PLACE, OFFSETS, 0)
    assert counts.n_places > 5

    config = make_config("cut", *settings(game, kind))
    train(config, command(quiet(), until=96))
    cut = RunDir(config.run_dir)
    assert saved(cut, 96).timesteps == read_place_counts(cut).timesteps == 96
    resume(cut.root, command(quiet()))
    assert cut.places.read_bytes() == whole.places.read_bytes()
    for path in whole.checkpoints_newest_first():
        timesteps = int(path.name)
        assert as_counter(saved(whole, timesteps)) == own.by_timesteps[timesteps]
        ours, theirs = (run.checkpoint(timesteps) / "places.json" for run in (cut, whole))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.slow
def test_two_halves_of_the_envs_are_counted_up_to_each_checkpoint(
    make_config: MakeConfig, game: Path
) -> None:
    """One half may play on while the other is asked, so no other count can look on."""
    run_dir = learn(make_config("run", *settings(game), "env.n_workers=2"))
    checkpoints = [int(path.name) for path in run_dir.checkpoints_newest_first()]
    assert len(checkpoints) > 2
    for timesteps in checkpoints:
        assert saved(run_dir, timesteps).timesteps == timesteps


@pytest.mark.slow
def test_a_run_that_goes_back_has_the_map_of_that_moment(
    make_config: MakeConfig, game: Path
) -> None:
    config = make_config("run", *settings(game))
    train(config, command(quiet()))
    run_dir = RunDir(config.run_dir)
    before = run_dir.places.read_bytes()
    resume(run_dir.root, command(quiet(), until=96), at=64)
    assert read_place_counts(run_dir).timesteps == 96
    resume(run_dir.root, command(quiet()))
    assert run_dir.places.read_bytes() == before


@pytest.mark.slow
def test_a_fork_goes_on_with_its_parents_map_unless_it_counts_anew(
    make_config: MakeConfig, game: Path
) -> None:
    config = make_config("parent", *settings(game))
    train(config, command(quiet()))
    parent = RunDir(config.run_dir)
    for name, counters, before in (("keep", "keep", 64), ("new", "new", 0)):
        fork = fork_of(parent, 64, name, fork__counters=counters)
        train(fork, command(quiet(), until=before + 32))
        counts = read_place_counts(RunDir(fork.run_dir))
        assert counts.timesteps == before + 32
        assert counts.since == 0
    assert read_place_counts(parent).timesteps == 192


@pytest.mark.slow
def test_a_run_whose_game_gets_a_place_goes_on_as_the_same_run(
    make_config: MakeConfig, game: Path
) -> None:
    """Its map begins where it goes on, without a note; what it learns does not change."""
    text = game.read_text(encoding="utf-8")
    before, _, after = text.partition("\nplace: ")
    runs = []
    for name, becomes in (("never", before), ("later", before + "\nplace: " + after)):
        game.write_text(before, encoding="utf-8")
        config = make_config(name, *settings(game))
        train(config, command(quiet(), until=96))
        run_dir = RunDir(config.run_dir)
        assert not run_dir.places.exists()
        assert not (run_dir.checkpoint(96) / "places.json").exists()
        game.write_text(becomes, encoding="utf-8")
        resume(run_dir.root, command(quiet()))
        runs.append(run_dir)
    never, later = runs
    assert not never.places.exists()
    counts = read_place_counts(later)
    assert (counts.since, counts.timesteps) == (96, 96)
    (resumed,) = (event for event in read_events(later) if isinstance(event, Resumed))
    assert not resumed.changes
    for file in FILES:
        ours, theirs = (run.checkpoint(192) / file for run in runs)
        assert ours.exists() == theirs.exists()
        assert not ours.exists() or ours.read_bytes() == theirs.read_bytes()


@pytest.mark.slow
def test_a_map_of_another_place_begins_anew(make_config: MakeConfig, game: Path) -> None:
    config = make_config("run", *settings(game))
    train(config, command(quiet(), until=96))
    text = game.read_text(encoding="utf-8")
    text = text.replace("place_offsets: levels.yaml\n", "")
    game.write_text(text.replace(", player_height]", "]"), encoding="utf-8")
    resume(config.run_dir, command(quiet()))
    counts = read_place_counts(RunDir(config.run_dir))
    assert (counts.names, counts.since, counts.timesteps) == (PLACE[:2], 96, 96)
    (resumed,) = (e for e in read_events(RunDir(config.run_dir)) if isinstance(e, Resumed))
    (told,) = (text for text in resumed.not_restored if "visited places" in text)
    assert "was [level, player_x, player_height]" in told


class Kill(BaseCallback):
    """Ends the only worker in the middle of a rollout."""

    def _on_step(self) -> bool:
        if self.num_timesteps == 76:
            vec_env = self.training_env.unwrapped
            assert isinstance(vec_env, SharedMemoryVecEnv)
            vec_env.processes[0].kill()
        return True


def test_a_replaced_worker_loses_what_was_not_collected(
    make_config: MakeConfig, game: Path
) -> None:
    """Collected at 64; 76 were played when it died, and its envs began anew in the next step."""
    run_dir = learn(make_config("run", *settings(game)), Kill())
    assert saved(run_dir, 64).timesteps == 64
    assert read_place_counts(run_dir).timesteps == 192 - (76 - 64) - 2


@pytest.mark.slow
@pytest.mark.parametrize("every_s", [0.0, 1e6])
def test_the_file_is_written_between_checkpoints_as_well_but_not_all_the_time(
    make_config: MakeConfig, game: Path, monkeypatch: pytest.MonkeyPatch, every_s: float
) -> None:
    monkeypatch.setattr("game_rl.training.extensions.places_extension._WRITE_EVERY_S", every_s)
    monkeypatch.setattr("game_rl.training.extensions.places_extension._MOST_WRITING", 1e9)
    config = make_config("run", *settings(game), "checkpoints.every_timesteps=192")
    seen = {}

    class Look(BaseCallback):
        def _on_step(self) -> bool:
            seen[self.num_timesteps] = read_place_counts(RunDir(config.run_dir)).timesteps
            return True

    learn(config, Look())
    if not every_s:
        assert all(seen[timesteps] == timesteps - 2 for timesteps in (34, 66, 98, 130, 162))
    assert seen[34] == (0 if every_s else 32)


@pytest.mark.parametrize("at", [0, 64])
def test_a_disk_that_fails_ends_the_run_with_what_is_saved(
    make_config: MakeConfig, game: Path, at: int
) -> None:
    config = make_config("run", *settings(game))
    config.run_dir.mkdir()
    run_dir = RunDir(config.run_dir)

    class Fail(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps == at + 2:
                run_dir.places.unlink()
                run_dir.places.mkdir()
            return True

    if not at:
        run_dir.places.mkdir()
    says = "the newest one saved is of timestep 64" if at else "nothing was saved yet"
    with pytest.raises(CheckpointError if at else TrainingError, match=says):
        learn(config, Fail())
    saved = [int(path.name) for path in run_dir.checkpoints_newest_first()]
    assert saved == ([64, 32] if at else [])
    if at:
        Checkpoint(run_dir.checkpoint(64)).verify()


def pictures(run_dir: RunDir) -> list[int]:
    found = EventAccumulator(str(run_dir.tensorboard), {"images": 0}).Reload()
    if "game/places" not in found.Tags()["images"]:
        return []
    return [event.step for event in found.Images("game/places")]


@pytest.mark.slow
def test_twenty_pictures_go_to_tensorboard_and_a_resume_repeats_none(
    make_config: MakeConfig, game: Path
) -> None:
    total = ("total_timesteps=1280", "checkpoints.every_timesteps=256")
    drawn = []
    for name, until in (("whole", None), ("cut", 640)):
        config = make_config(name, *settings(game), *total)
        train(config, command(quiet(), until=until))
        if until is not None:
            resume(config.run_dir, command(quiet()))
        drawn.append(pictures(RunDir(config.run_dir)))
    assert drawn[0] == drawn[1] == list(range(64, 1281, 64))


def test_tensorboard_and_report_have_names_and_the_flags_that_the_run_knows(
    make_config: MakeConfig, game: Path
) -> None:
    text = game.read_text(encoding="utf-8") + "place_names: {1: the ring}\n"
    game.write_text(text + "milestones: [player_x]\n", encoding="utf-8")
    config = make_config("run", *settings(game))
    train(config, command(quiet()))
    run_dir = RunDir(config.run_dir)
    shown = EventAccumulator(str(run_dir.tensorboard), {"images": 0}).Reload()
    image = shown.Images("game/places")[-1]
    assert image.step == 192
    counts = read_place_counts(run_dir)
    flags = place_flags(read_events(run_dir), PLACE, OFFSETS)
    assert len(flags) > 1
    joined = joined_maps(counts, ScreenMap(), pixels=1, names={1: "the ring"})
    expected = places_picture(
        counts, title="Tiny at timestep 192", side=480, joined=joined, flags=flags
    )
    with Image.open(io.BytesIO(image.encoded_image_string)) as found:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    (section,) = places_section(read_run(run_dir.root))
    png = base64.b64decode(str(section).partition("base64,")[2].partition('"')[0])
    of_report = places_picture(counts, title="run", joined=joined, flags=flags)
    with Image.open(io.BytesIO(png)) as found:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(of_report))
    first = Image.open(io.BytesIO(shown.Images("game/places")[0].encoded_image_string))
    assert 200 < first.height < expected.height, "fewer flags"


def test_without_tensorboard_nothing_is_drawn(
    make_config: MakeConfig, game: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("game_rl.training.extensions.places_extension.places_picture", None)

    class NoOutputs(BaseCallback):
        def _on_training_start(self) -> None:
            self.logger.output_formats.clear()

        def _on_step(self) -> bool:
            return True

    run_dir = learn(make_config("run", *settings(game)), NoOutputs())
    assert read_place_counts(run_dir).timesteps == 192


def test_the_checkpoint_says_that_it_has_the_map(make_config: MakeConfig, game: Path) -> None:
    config = make_config("run", *settings(game))
    train(config, command(quiet(), until=64))
    checkpoint = Checkpoint(RunDir(config.run_dir).checkpoint(64))
    assert "visited places" in checkpoint.contents
    file = checkpoint.path / "places.json"
    assert json.loads(file.read_text(encoding="utf-8")).keys() == {"npz"}
    assert np.load(RunDir(config.run_dir).places).files == [
        "sheets",
        "visits",
        "found",
        "last",
        "about",
    ]
