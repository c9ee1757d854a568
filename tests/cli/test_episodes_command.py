"""`game-rl episodes`, and `record` of logged episodes: listed, chosen, shown and refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.episodes.logged_episodes import read_logged_episodes
from game_rl.files.run_dir import RunDir
from tests.tiny_run import TINY, train_once


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    folder = tmp_path_factory.mktemp("episodes")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return train_once(load_config(config, ["env.start_states=[level_1, level_2]"]))


def listed(
    capsys: pytest.CaptureFixture[str], run_dir: RunDir, *options: str
) -> list[dict[str, Any]]:
    assert main(["episodes", str(run_dir.root), "--json", *options]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_the_list_is_the_log(run_dir: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    logged = [episode.to_json() for episode in read_logged_episodes(run_dir)]
    assert listed(capsys, run_dir) == logged
    assert listed(capsys, run_dir, "--episodes", "3") == logged[-3:]
    level_2 = [each for each in logged if each["start_state"] == "level_2"]
    assert listed(capsys, run_dir, "--start-states", "level_2") == level_2
    best = sorted(logged, key=lambda each: -each["reward"])
    assert listed(capsys, run_dir, "--best", "--episodes", "2") == best[:2]
    own = [each for each in logged if each["kind"] != "training"]
    worst = listed(capsys, run_dir, "--worst", "--evaluations", "--episodes", "1")
    for kind, timesteps in {(each["kind"], each["timesteps"]) for each in own}:
        (found,) = (e for e in worst if (e["kind"], e["timesteps"]) == (kind, timesteps))
        rewards = [e["reward"] for e in own if (e["kind"], e["timesteps"]) == (kind, timesteps)]
        assert found["reward"] == min(rewards)  # type: ignore[type-var]


def test_the_table_says_how_many_there_are_and_how_to_see_one(
    run_dir: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["episodes", str(run_dir.root), "--from", "100", "--to", "160"]) == 0
    out = capsys.readouterr().out
    n = len(read_logged_episodes(run_dir))
    assert f"{n} episodes are logged, 1 to {n}, in " in out
    assert "of at most 100 MB" in out
    assert f"game-rl record {run_dir.root} --logged " in out
    assert "final" not in out


def pictures(path: Path) -> list[Any]:
    with Image.open(path) as gif:
        size = gif.size
        shown = []
        for number in range(gif.n_frames):  # type: ignore[attr-defined]
            gif.seek(number)
            picture = np.asarray(gif.convert("RGB"))
            shown += [picture] * (gif.info["duration"] // 70)
    assert shown[0].shape[1::-1] == size
    return shown


def test_a_clip_of_an_evaluations_episode_is_the_clip_of_the_policy_that_played_it(
    run_dir: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last evaluation played its first game with the last checkpoint's likeliest actions."""
    output = tmp_path / "logged.gif"
    evaluated = listed(capsys, run_dir, "--evaluations", "--from", "192")
    first = next(e for e in evaluated if (e["kind"], e["env"]) == ("evaluation", 0))
    assert main(["record", str(run_dir.root), "--logged", str(first["number"]),
                 "--output", str(output)]) == 0  # fmt: skip
    told = capsys.readouterr().out
    assert f"episode {first['number']}: evaluation, ended at timestep 192" in told
    from game_rl.seeds import seed_for

    seed = str(seed_for(0, "evaluation"))
    played = tmp_path / "played.gif"
    assert main(["record", f"{run_dir.root}@192", "--episodes", "1", "--seed", seed,
                 "--output", str(played)]) == 0  # fmt: skip
    assert output.read_bytes() == played.read_bytes()


def test_a_grid_has_each_episode_in_its_place_until_all_have_ended(
    run_dir: RunDir, tmp_path: Path
) -> None:
    apart = []
    for number in (1, 2, 3):
        path = tmp_path / f"{number}.gif"
        assert main(["record", str(run_dir.root), "--logged", str(number),
                     "--output", str(path)]) == 0  # fmt: skip
        apart.append(pictures(path))
    path = tmp_path / "grid.gif"
    assert main(["record", str(run_dir.root), "--logged", "1", "2", "3", "--grid",
                 "--output", str(path)]) == 0  # fmt: skip
    grid = pictures(path)
    assert len(grid) == max(map(len, apart))
    height, width = apart[0][0].shape[:2]
    for time, picture in enumerate(grid):
        for place, episode in enumerate(apart):
            top, left = (place // 2) * (height + 4), (place % 2) * (width + 4)
            shown = picture[top : top + height, left : left + width]
            np.testing.assert_array_equal(shown, episode[min(time, len(episode) - 1)])


def test_an_overlay_stands_below_the_screen_and_changes_with_the_action(
    run_dir: RunDir, tmp_path: Path
) -> None:
    clips = {}
    for name, options in {
        "bare": [],
        "action": ["--overlay", "action"],
        "all": ["--overlay"],
        "latest": ["--overlay", "value", "--checkpoint", "latest"],
        "64": ["--overlay", "value", "--checkpoint", "128"],
    }.items():
        path = tmp_path / f"{name}.gif"
        assert main(["record", str(run_dir.root), "--logged", "1", "--output", str(path),
                     *options]) == 0  # fmt: skip
        clips[name] = pictures(path)
    height = 2 * 144
    for name in ("action", "all", "latest", "64"):
        assert len(clips[name]) == len(clips["bare"])
        for with_overlay, bare in zip(clips[name], clips["bare"], strict=True):
            np.testing.assert_array_equal(with_overlay[:height], bare)
    strips = {name: [p[height:].tobytes() for p in shown] for name, shown in clips.items()}
    found = read_logged_episodes(run_dir)
    actions = found.log(0).played
    each = (len(strips["action"]) - 15) // len(actions)  # pictures of a timestep
    by_action = {action: strips["action"][each * t] for t, action in enumerate(actions)}
    assert len(set(by_action.values())) == len(set(actions))  # each has a name of its own
    assert strips["action"][: each * len(actions)] == [
        by_action[action] for action in actions for _ in range(each)
    ]
    assert len(set(strips["all"])) > len(set(strips["action"]))
    assert strips["latest"] != strips["64"]


def test_a_clip_of_new_episodes_has_overlay_and_grid_as_well(
    run_dir: RunDir, tmp_path: Path
) -> None:
    path = tmp_path / "new.gif"
    assert main(["record", str(run_dir.root), "--episodes", "2", "--grid", "--overlay",
                 "--output", str(path)]) == 0  # fmt: skip
    assert pictures(path)[0].shape == (2 * (144 + 26), 2 * (2 * 160 + 2), 3)


def test_logged_clips_go_to_the_runs_videos_by_number(
    run_dir: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, name in (
        (["--logged", "2"], "episode_000002.gif"),
        (["--logged", "2", "1"], "episodes_000002_and_1_more.gif"),
    ):
        assert main(["record", str(run_dir.root), "--json", *options]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["file"] == str(run_dir.videos / name)
        assert [episode["number"] for episode in facts["episodes"]] == list(map(int, options[1:]))
        assert (run_dir.videos / name).exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--logged", "999"], "there is no episode 999; those from 1 to "),
        (["--logged", "1", "--best"], "leave out the numbers"),
        (["--best", "--seed", "3"], "leave one out"),
        (["--from", "9", "--to", "8"], "--from 9 is after --to 8"),
        (["--from", "9000"], "they ended between timestep 50 and 192"),
        (["--best", "--output", "clip.avi"], "must end in .gif or .mp4"),
        (["--logged", "1", "--overlay", "colour"], "invalid choice: 'colour'"),
    ],
)
def test_a_mistake_is_named(
    run_dir: RunDir, options: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", str(run_dir.root), *options]) == 2
    assert text in capsys.readouterr().err


def test_a_run_without_a_log_says_why(
    tmp_path: Path, run_dir: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_bytes(run_dir.config.read_bytes())
    for command in (["episodes"], ["record", "--best"]):
        assert main([command[0], str(tmp_path), *command[1:]]) == 2
        assert "has no logged episodes: none has ended yet" in capsys.readouterr().err
