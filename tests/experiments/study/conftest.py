from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.config.studies import Study, load_study
from tests.tiny_run import TINY

STUDY = """\
kind: study
question: Is the fast one better?
results: {place}/results
run_dir: {place}/runs
arms:
  slow: {{config: arm.yaml}}
  fast: {{config: arm.yaml, algorithm: {{learning_rate: 1.0e-2}}}}
seeds: [5, 6, 7, 8, 9, 10]
budget: {{timesteps: 192}}
test: {{episodes: 20}}
metric: mean_reward
primary: {{arm: fast, against: slow}}
executor: {{parallel: 2}}
"""

MakeStudy = Callable[..., Study]


def write_study(place: Path) -> Path:
    """The file of a study whose folders are in `place`, with that of its arms beside it."""
    place.mkdir(exist_ok=True)
    (place / "arm.yaml").write_text(TINY.format(run_dir=place / "unused"))
    path = place / "study.yaml"
    path.write_text(STUDY.format(place=place))
    return path


@pytest.fixture
def make_study(tmp_path: Path) -> MakeStudy:
    def make(name: str = "study", *overrides: str) -> Study:
        return load_study(write_study(tmp_path / name), overrides)

    return make
