"""SB3's logger with the outputs that the config names."""

from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from game_rl.config.output_config import LoggingConfig
from game_rl.files.run_dir import RunDir
from game_rl.loggers.progress_table import ProgressTable
from game_rl.loggers.row_journal import RowJournal


def make_logger(config: LoggingConfig, run_dir: RunDir) -> Logger:
    """Return a logger that continues the run's files, which must have been cut.

    Raises:
        OSError: the disk fails.
    """
    outputs: list[KVWriter] = []
    run_dir.root.mkdir(parents=True, exist_ok=True)
    if config.tensorboard:
        outputs.append(TensorBoardOutputFormat(str(run_dir.tensorboard)))
    if config.csv:
        outputs.append(ProgressTable(run_dir.progress))
    if config.wandb is not None:
        outputs.append(RowJournal(run_dir.wandb_rows))
    folder = run_dir.tensorboard if config.tensorboard else run_dir.root
    return Logger(folder=str(folder), output_formats=list(outputs))
