"""The training of `game-rl train`, without evaluation and checkpoints.

    python -c "from benchmarks.trainings.ours import main; main()" [--set KEY=VALUE] ...

It is started this way because Python's worker processes import their parent's main module again. In
the real command that module is light, while this one imports torch.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.trainings.update_clock import UpdateClock
from benchmarks.trainings.work import Work
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.training.session import TrainingSession, training_process

CONFIG = Path(__file__).with_name("duel.yaml")
_NEVER = 10**12


def train(config: RunConfig, run_dir: RunDir) -> UpdateClock:
    clock = UpdateClock()
    with settled_session(config, run_dir, clock) as session:
        clock.forget()
        session.learn_until(session.num_timesteps + config.total_timesteps)
    return clock


@contextmanager
def settled_session(
    config: RunConfig, run_dir: RunDir, *clocks: UpdateClock
) -> Iterator[TrainingSession]:
    """Open a session without evaluations and checkpoints, whose trial of worker cores is over."""
    never = {"every_timesteps": _NEVER}
    endless = config.model_copy(
        update={
            "total_timesteps": _NEVER,
            "evaluation": config.evaluation.model_copy(update=never),
            "checkpoints": config.checkpoints.model_copy(update=never),
        }
    )
    with (
        training_process(),
        TrainingSession(endless, load_game(config.game), run_dir, more=clocks) as session,
    ):
        while session.num_timesteps == 0 or not session.callbacks.cores.is_settled:
            session.learn_until(session.num_timesteps + 1)
        yield session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    work, options = Work.parse(parser)
    config = load_config(CONFIG, [*work.overrides(), *options.set])
    with tempfile.TemporaryDirectory() as folder:
        print(train(config, RunDir(Path(folder))).to_json())
