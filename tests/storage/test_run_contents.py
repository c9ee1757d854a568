"""The files that make up a run at a checkpoint."""

from pathlib import Path

from game_rl.storage.run_contents import checkpoint_contents
from tests.storage.runs import make_run, settings_of


def test_the_episodes_that_a_run_learns_from_are_part_of_it(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    run_dir.played.mkdir()
    for name in ("0000_a.json", "0001_b.json"):
        (run_dir.played / name).write_text(f'{{"start_state": "{name}"}}', encoding="utf-8")
    manifest, contents = checkpoint_contents(settings_of(run_dir, tmp_path.as_uri()), 100, {})
    paths = [file.path for file in manifest.files]
    assert [path for path in paths if path.startswith("played/")] == [
        "played/0000_a.json",
        "played/0001_b.json",
    ]
    sizes = {file.path: sum(piece.n_bytes for piece in file.pieces) for file in contents.files}
    assert sizes["played/0001_b.json"] == len('{"start_state": "0001_b.json"}')
