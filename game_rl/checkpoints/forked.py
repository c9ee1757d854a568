"""The first checkpoint of a fork: its parent's, with the parts that are new in the fork."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import safetensors.numpy

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName, write_files
from game_rl.checkpoints.checkpoint_state import CheckpointState, LogState, TrainingState
from game_rl.checkpoints.model_state import Tensors, dump_tensors
from game_rl.lake.mark import LakeState

_PLAYED: tuple[FileName, ...] = ("state.json", "policy.safetensors", "optimizer.safetensors")


@dataclass(frozen=True, kw_only=True)
class NewParts:
    """Parts that a fork does not take over from its parent's checkpoint.

    Attributes:
        optimiser: its moments.
        counters: timesteps, schedules, curves, evaluations.
        emulators: the running episodes.
        random_numbers: the state of all generators.
        replay: the replay buffer.
        algorithm: the algorithm's own state apart from the network, if the algorithm is another
            one.
    """

    optimiser: bool = False
    counters: bool = False
    emulators: bool = False
    random_numbers: bool = False
    replay: bool = False
    algorithm: bool = False


def write_forked_checkpoint(
    source: Checkpoint,
    path: Path,
    new: NewParts,
    *,
    state: CheckpointState,
    policy: Tensors | None,
    lake: LakeState | None,
) -> None:
    """Write the directory `path`; unchanged files are linked.

    Args:
        state: description of the new checkpoint.
        policy: the fork's weights, or None if they are the parent's.
        lake: state of the fork's Lake, or None if it has no Lake.

    Raises:
        FileExistsError: `path` exists.
        OSError: the disk is full or fails. Nothing is left then.
    """
    written = dict(_written(source, new, state=state, policy=policy, lake=lake))
    dropped = {"lake.json", *(("replay.safetensors",) if new.replay else ())}
    linked = {n: e for n, e in source.files.items() if n not in written and n not in dropped}
    write_files(path, written.items(), linked=linked, linked_from=source.path)


def link_for_play(source: Checkpoint, path: Path) -> None:
    """Link the files of a best checkpoint that playing and exporting need, but not resuming."""
    linked = {name: source.files[name] for name in _PLAYED}
    write_files(path, (), linked=linked, linked_from=source.path)


def _written(
    source: Checkpoint,
    new: NewParts,
    *,
    state: CheckpointState,
    policy: Tensors | None,
    lake: LakeState | None,
) -> Iterator[tuple[FileName, Iterable[bytes]]]:
    yield "state.json", (state.model_dump_json(indent=2).encode(),)
    play = source.play()
    changed = _changed_play(play, new)
    if changed != play:
        yield "play.json", (changed.model_dump_json().encode(),)
    if new.emulators:
        yield "arrays.safetensors", (safetensors.numpy.save({}),)
    if policy is not None:
        yield "policy.safetensors", dump_tensors(policy)
    if new.optimiser:
        yield "optimizer.safetensors", dump_tensors({})
    if lake is not None:
        yield "lake.json", (lake.model_dump_json().encode(),)


def _changed_play(play: TrainingState, new: NewParts) -> TrainingState:
    changes: dict[str, object] = {}
    if new.random_numbers:
        changes["random"] = None
    if new.emulators:
        changes |= {"envs": None, "seeds": ()}
    if new.algorithm or new.counters:
        changes["algorithm"] = {}
    if new.counters:
        changes |= {
            "log": LogState(values={}, counts={}, excluded={}, file_bytes={}),
            "n_episodes": 0,
            "episodes": (),
            "successes": (),
            "evaluations": "",
            "evaluation_episodes": b"",
        }
    return play.model_copy(update=changes)
