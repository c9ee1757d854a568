"""The errors that the command line reports to users.

    GameRLError                 exit code 1
    ├── UsageError              2   a command called in a way that cannot work
    ├── ConfigError             2   a run config that is not valid
    ├── GameFileError           2   a game.yaml that is not valid, or a file it names
    │   └── RomError            2   a ROM that is missing, damaged or unsupported
    ├── DoesNotFitError         3   the run needs more than the machine has
    ├── EmulatorError           1   the emulator refused an operation
    │   └── LockUpError         1   the game has executed an opcode that no Game Boy has
    ├── WorkerError             1   an environment process raised, died or hung
    ├── CheckpointError         1   a checkpoint is damaged or belongs to another run
    │   └── NoCheckpointError   2   a run has no checkpoint of that name
    ├── LakeError               1   a Lake or a replay file is damaged or has another shape
    │   └── NoLakeError         2   a folder is not a Lake, or a file not a replay buffer
    ├── ReplayError             1   a logged episode does not replay as it was logged
    ├── StorageError            1   object storage refuses, is out of reach or has damaged data
    │   └── NotStoredError      4   a run or an experiment is done, but its upload never worked
    ├── TrainingError           1   training cannot continue (a non-finite loss, a full disk)
    │   └── NonFiniteError      1   an update left a weight that is NaN or infinite
    └── ExperimentError         1   an experiment cannot continue (a member dies repeatedly)
        └── NobodyLeftError     1   the weights of all members are NaN or infinite
    Interrupted                 128 + number of the signal that stopped the run

A message names the thing, what was found, and the way out.
"""

import errno
import os


class GameRLError(Exception):
    """An error that the user can fix; the CLI prints its text without a traceback."""

    exit_code = 1


class UsageError(GameRLError):
    exit_code = 2


class ConfigError(GameRLError):
    exit_code = 2


class GameFileError(GameRLError):
    exit_code = 2


class RomError(GameFileError):
    pass


class DoesNotFitError(GameRLError):
    exit_code = 3


class EmulatorError(GameRLError):
    pass


class LockUpError(EmulatorError):
    pass


class WorkerError(GameRLError):
    pass


class CheckpointError(GameRLError):
    pass


class NoCheckpointError(CheckpointError):
    exit_code = 2


class LakeError(GameRLError):
    pass


class NoLakeError(LakeError):
    exit_code = 2


class ReplayError(GameRLError):
    pass


class StorageError(GameRLError):
    pass


class NotStoredError(StorageError):
    exit_code = 4


class TrainingError(GameRLError):
    pass


class NonFiniteError(TrainingError):
    pass


class ExperimentError(GameRLError):
    pass


class NobodyLeftError(ExperimentError):
    pass


class Interrupted(GameRLError):  # noqa: N818 - not a failure: the user asked for it
    def __init__(self, message: str, *, exit_code: int = 130) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def system_fault(error: OSError, place: object = "input or output") -> str:
    """Describe a system error in one line; `place` is used if the error names no file."""
    if error.errno == errno.EMFILE:
        return "this process may not open more files at once; allow more with `ulimit -n 4096`"
    name = error.filename
    where = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else place
    return f"{where}: {error.strerror or error}"


def unencodable(error: UnicodeEncodeError) -> str:
    """Describe a name of a file that the locale of this process cannot have, in one line."""
    return (
        f"{error.object} cannot be the name of a file here, where names are in {error.encoding}; "
        "set PYTHONUTF8=1, or a locale in UTF-8 such as LC_ALL=C.UTF-8, or use another name"
    )
