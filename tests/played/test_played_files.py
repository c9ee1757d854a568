"""The files of played episodes: which are found, and what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest

from game_rl.config.learn_from import PlayedForPPO
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.played.played_files import copied_files, copy_files, found_files, read_played
from tests.played.recorded import FRAME_SKIP, GAME, as_presses, changed, record


def test_files_are_named_by_a_path_a_pattern_a_folder_or_a_list(tmp_path: Path) -> None:
    files = record(tmp_path / "mine", 3, most=2)
    other = record(tmp_path / "other", 1, most=2)
    for named, expected in {
        str(files[1]): files[1:2],
        f"{tmp_path}/mine/*.json": files,
        f"{tmp_path}/mine": files,
        (f"{tmp_path}/mine/[12].json", str(other[0]), str(files[1])): [*files[1:], *other],
    }.items():
        settings = PlayedForPPO.model_validate({"episodes": named})
        assert found_files(settings) == expected
    with pytest.raises(UsageError, match=r"there is no file .*/yours/\*\.json; record"):
        found_files(PlayedForPPO.model_validate({"episodes": f"{tmp_path}/yours/*.json"}))


def test_what_cannot_be_learned_from_is_a_mistake(tmp_path: Path) -> None:
    (file,) = record(tmp_path / "mine", 1, most=3)
    faults: dict[str, dict[str, Any]] = {
        "actions.1: .*fly.*": {"actions": ["right", "fly"]},
        "start_state: .*nowhere": {"start_state": "nowhere"},
        "rom_sha256: the episode comes from another ROM": {"rom_sha256": 64 * "0"},
        "an action every 5 frames, and the run one every 8; set env.frame_skip=5": {
            "frame_skip": 5
        },
    }
    for fault, keys in faults.items():
        before = file.read_text(encoding="utf-8")
        changed(file, **keys)
        with pytest.raises(UsageError, match=f"(?s)algorithm.learn_from.played.episodes.*{fault}"):
            read_played([file], GAME, frame_skip=FRAME_SKIP)
        file.write_text(before, encoding="utf-8")


def test_buttons_of_frames_fit_any_frame_skip(tmp_path: Path) -> None:
    (file,) = record(tmp_path / "mine", 1, most=6)
    actions = read_played([file], GAME, frame_skip=FRAME_SKIP)[0].actions
    as_presses(file)
    for frame_skip, each in ((8, 1), (4, 2), (2, 4)):
        (found,) = read_played([file], GAME, frame_skip=frame_skip)
        assert found.actions == tuple(action for action in actions for _ in range(each))
        assert all(sum(p.frames for p in presses) == frame_skip for presses in found.presses)


def test_a_run_has_copies_in_the_order_of_the_files(tmp_path: Path) -> None:
    files = record(tmp_path / "mine", 11, most=1)
    files.append(files[0].rename(tmp_path / "with a space & ä.yaml"))
    del files[0]
    run_dir = RunDir(tmp_path)
    assert copied_files(run_dir) is None
    copy_files(files, run_dir)
    copies = copied_files(run_dir)
    assert copies is not None
    assert [path.read_bytes() for path in copies] == [path.read_bytes() for path in files]
    assert copies[-1].name == "0010_with_a_space___ä.json"
