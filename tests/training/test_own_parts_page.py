"""What docs/how-to/your-own-parts.md shows works as it stands there."""

import re
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir
from game_rl.training.train import resume, train
from tests.tiny_run import command
from tests.training.forks import quiet

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "your-own-parts.md"


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder has the page's files, each under the name in its first line."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert sorted(name for name, _ in found) == ["my_callbacks.py", "my_wrappers.py", "run.yaml"]
    for name, content in found:
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run.yaml"


@pytest.mark.slow
def test_the_run_of_the_page_goes_on_exactly_and_writes_its_curve(config_file: Path) -> None:
    courses: dict[str, tuple[int | None, ...]] = {"whole": (None,), "cut": (512, None)}
    for name, stops in courses.items():
        settings = [f"run_dir={name}", "evaluation.baselines=false"]
        train(load_config(config_file, settings), command(quiet(), until=stops[0]))
        for until in stops[1:]:
            resume(Path(name), command(quiet(), until=until))
    whole, cut = (Checkpoint(RunDir(Path(name)).checkpoint(1_024)) for name in ("whole", "cut"))
    for file in ("policy.safetensors", "callbacks.json"):
        assert (whole.path / file).read_bytes() == (cut.path / file).read_bytes()
    envs = whole.play().envs
    assert envs == cut.play().envs
    assert envs is not None
    assert {len(env.wrappers) for env in envs} == {1}
    curves = EventAccumulator(str(RunDir(Path("whole")).tensorboard))
    curves.Reload()
    assert len(curves.Scalars("own/reward_trend")) == 1_024 // 256
    assert np.isfinite([point.value for point in curves.Scalars("own/reward_trend")]).all()
