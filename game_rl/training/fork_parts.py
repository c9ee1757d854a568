"""Which parts of a checkpoint a fork takes over, and its first checkpoint."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch
from stable_baselines3.common.policies import BasePolicy
from torch import nn

from game_rl.algorithms.make_algorithm import make_policy
from game_rl.algorithms.policies import QPolicy, load_q_network
from game_rl.algorithms.reward_scaling import REWARD_STATE
from game_rl.checkpoints.checkpoint import Checkpoint, is_offline
from game_rl.checkpoints.checkpoint_files import FileName, write_files
from game_rl.checkpoints.checkpoint_state import CheckpointState, LogState, TrainingState
from game_rl.checkpoints.model_state import (
    Tensors,
    dump_tensors,
    load_module_tensors,
    module_tensors,
)
from game_rl.config.allowed_changes import (
    FORK,
    FORK_EPISODES,
    FORK_OWN,
    FORK_REPLAY,
    KeyRule,
    role_in_words,
)
from game_rl.config.migration import saved_config
from game_rl.config.schema import ForkConfig, RunConfig
from game_rl.config.strict_model import differences
from game_rl.episodes.button_log import with_spoiled_notes
from game_rl.errors import UsageError
from game_rl.features.feature_table import FEATURE_FILES
from game_rl.files.run_dir import RunDir, RunIdentity
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.games.parts.part_spec import unused_parts
from game_rl.seeds import seed_for
from game_rl.vec_env.make_vec_env import SpacesVecEnv


@dataclass(frozen=True)
class Differences:
    """Old and new values, by key, where a fork's config and game differ from its parent's."""

    config: Mapping[str, tuple[object, object]]
    game: Mapping[str, tuple[object, object]]

    def told(self) -> tuple[str, ...]:
        """Return the differences as `key: old -> new`."""
        both = {**self.config, **self.game}
        return tuple(f"{key}: {old} -> {new}" for key, (old, new) in both.items())

    def bound_by(self, rule: KeyRule) -> list[str]:
        """Return the keys that differ although the rule binds them, without `game.` before them."""
        return [
            *rule.bound_of(self.config),
            *(key for key in self.game if rule.reason(f"game.{key}") is not None),
        ]


def find_differences(state: CheckpointState, config: RunConfig, game: Game) -> Differences:
    """Compare a fork's config and game with its parent's at the checkpoint.

    Raises:
        UsageError: the game's actions differ; each output of the network stands for one of them.
    """
    old = saved_config(state.config, source="the checkpoint").model_dump(mode="json")
    definition = game.definition.model_dump(mode="json", by_alias=True)
    unused = unused_parts(config.env.observation.parts, state.game, definition)
    found = Differences(
        differences(old, config.model_dump(mode="json"), *FORK_OWN.bound),
        differences(state.game, definition, "rom.path", *unused),
    )
    refused = found.bound_by(FORK)
    if refused:
        key = f"game.{refused[0]}"
        raise UsageError(
            f"a fork cannot change {refused[0]} ({role_in_words(key)}): {FORK.reason(key)}"
        )
    return found


@dataclass(frozen=True, kw_only=True)
class NewParts:
    """Parts that a fork does not take over from its parent's checkpoint.

    Attributes:
        optimiser: its moments.
        counters: timesteps, schedules, curves, evaluations.
        emulators: the running episodes.
        random_numbers: the state of all generators.
        replay: the replay buffer.
        algorithm: the algorithm's own state apart from the network and the statistics of rewards,
            if the algorithm is another one.
        rules: the game file's, by which running episodes go on.
    """

    optimiser: bool = False
    counters: bool = False
    emulators: bool = False
    random_numbers: bool = False
    replay: bool = False
    algorithm: bool = False
    rules: bool = False

    @property
    def dropped_files(self) -> Iterator[FileName]:
        """Files of the parent's checkpoint that the fork does not take over."""
        if self.replay:
            yield "replay.safetensors"
        for name, file in FEATURE_FILES.items():
            if file.fork == "never" or self.counters:
                yield name


def new_parts(differences: Differences, fork: ForkConfig) -> NewParts:
    """Return the parts of the fork that start again.

    Raises:
        UsageError: the algorithm differs, but the fork asks to keep the optimiser.
    """
    seed = "seed" in differences.config
    algorithm = "algorithm.name" in differences.config
    if algorithm and fork.optimiser == "keep":
        old, new = differences.config["algorithm.name"]
        raise UsageError(
            f"{new} cannot continue with the optimiser of {old}; add --set "
            "fork.optimiser=new, which keeps the weights"
        )
    return NewParts(
        optimiser=fork.optimiser == "new",
        counters=fork.counters == "new",
        emulators=bool(differences.bound_by(FORK_EPISODES)),
        random_numbers=seed,
        replay=bool(differences.bound_by(FORK_REPLAY)),
        algorithm=algorithm,
        rules=bool(differences.game),
    )


@dataclass(frozen=True)
class ForkSource:
    """A kept checkpoint of another run; its files were verified."""

    run_dir: RunDir
    checkpoint: Checkpoint
    identity: RunIdentity
    known_as: Path | None = None
    """Path by which the fork's records name the run, or None for its path on this machine."""

    @property
    def place(self) -> Path:
        return self.known_as or self.run_dir.root.absolute()

    @property
    def timesteps(self) -> int:
        return self.checkpoint.state.num_timesteps

    @property
    def config(self) -> RunConfig:
        """The run's config as it was at the checkpoint."""
        return self.checkpoint.config


@dataclass(frozen=True)
class ForkPlan:
    """A fork that can be made: everything is checked and nothing is written yet.

    Attributes:
        config: config of the fork; its section `fork` names the timestep.
        policy: weights for another algorithm or with noise; None: the parent's weights unchanged.
        keeps_best: whether the parent's best evaluation is also the fork's.
    """

    source: ForkSource
    config: RunConfig
    game: Game
    differences: Differences
    new: NewParts
    policy: Tensors | None
    keeps_best: bool

    @property
    def timesteps(self) -> int:
        """Timestep at which the fork begins."""
        return 0 if self.new.counters else self.source.timesteps

    @property
    def waited_frames(self) -> int:
        """Waited frames with which the fork's counter begins."""
        return 0 if self.new.counters else self.source.checkpoint.state.waited_frames

    def first_checkpoint(self, run_dir: RunDir) -> Path:
        # with new counters, it begins with the offline phase, as a new run with its config would
        begins_offline = self.new.counters and is_offline(self.config, None)
        return (run_dir.offline if begins_offline else run_dir).checkpoint(self.timesteps)

    def told_anew(self) -> tuple[str, ...]:
        """Return what begins anew in the fork, for people, each part with the reason."""
        new = self.new
        checkpoint = self.source.checkpoint
        seed = "another seed" if new.random_numbers else ""
        envs = [key for key in self.differences.bound_by(FORK_EPISODES) if key != "seed"]
        replay = self.differences.bound_by(FORK_REPLAY)
        has_lost_best = checkpoint.state.best is not None and not self.keeps_best
        noise = 0.0 if self.config.fork is None else self.config.fork.weight_noise
        rows: tuple[tuple[bool, str, str], ...] = (
            (new.algorithm, "the algorithm's state other than its network", "another algorithm"),
            (new.optimiser, "the optimiser", "fork.optimiser is new"),
            (new.counters, "timesteps, schedules and curves", "fork.counters is new"),
            *(
                (
                    new.counters and name in checkpoint.files,
                    f"the {file.words}",
                    "fork.counters is new",
                )
                for name, file in FEATURE_FILES.items()
                if file.fork != "never"
            ),
            (new.random_numbers, "the random numbers", seed),
            (new.emulators, "the episodes of the emulators", ", ".join(envs) or seed),
            (new.replay and checkpoint.has_replay, "the replay", ", ".join(replay)),
            (
                has_lost_best,
                "the best evaluation",
                "the fork is evaluated differently, or counts from 0",
            ),
            (noise > 0, "the weights, by noise", f"fork.weight_noise is {noise:g}"),
        )
        return tuple(f"{part} ({reason})" for is_new, part, reason in rows if is_new)


_PLAYED: tuple[FileName, ...] = ("state.json", "policy.safetensors", "optimizer.safetensors")


def write_forked_checkpoint(
    source: Checkpoint,
    path: Path,
    new: NewParts,
    *,
    state: CheckpointState,
    policy: Tensors | None,
    more: Mapping[FileName, Saved],
) -> None:
    """Write the directory `path`; unchanged files are linked.

    Args:
        state: description of the new checkpoint.
        policy: the fork's weights, or None if they are the parent's.
        more: the files of the run's features that are the fork's own.

    Raises:
        FileExistsError: `path` exists.
        OSError: the disk is full or fails. Nothing is left then.
    """
    written: dict[FileName, Iterable[bytes]] = {
        "state.json": (state.model_dump_json(indent=2).encode(),)
    }
    play = source.play()
    if (changed := _changed_play(play, new)) != play:
        written["play.json"] = (changed.model_dump_json().encode(),)
    if new.emulators:
        written["arrays.safetensors"] = (safetensors.numpy.save({}),)
    if policy is not None:
        written["policy.safetensors"] = dump_tensors(policy)
    if new.optimiser:
        written["optimizer.safetensors"] = dump_tensors({})
    for name, content in more.items():
        written[name] = (content.model_dump_json().encode(),)
    dropped = set(new.dropped_files)
    linked = {n: e for n, e in source.files.items() if n not in written and n not in dropped}
    write_files(path, written.items(), linked=linked, linked_from=source.path)


def link_for_play(source: Checkpoint, path: Path) -> None:
    """Link the files of a best checkpoint that playing and exporting need, but not resuming."""
    linked = {name: source.files[name] for name in _PLAYED}
    write_files(path, (), linked=linked, linked_from=source.path)


_CHANGED_RULES = "the game file changed in the middle of it, at the fork"


def _changed_play(play: TrainingState, new: NewParts) -> TrainingState:
    changes: dict[str, object] = {}
    if new.random_numbers:
        changes["random"] = None
    if new.emulators:
        changes |= {"envs": None, "seeds": ()}
    elif new.rules and play.envs is not None:
        changes["envs"] = tuple(with_spoiled_notes(env, _CHANGED_RULES) for env in play.envs)
    if new.algorithm or new.counters:
        kept = play.algorithm.keys() & {REWARD_STATE}  # the weights know such rewards
        changes["algorithm"] = {key: play.algorithm[key] for key in kept}
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


_NOISE = "weight_noise"


def fitting_weights(
    checkpoint: Checkpoint, parent: RunConfig, config: RunConfig, game: Game
) -> Tensors | None:
    """Return the weights for the algorithm of `config`, with the noise that its fork asks for.

    None if the checkpoint's weights can be used unchanged.

    Raises:
        CheckpointError: the weights are of another network; the error names the first tensor that
            does not fit.
    """
    spaces = SpacesVecEnv(config.env, game, n_envs=1)
    policy = make_policy(config.algorithm, spaces.observation_space, spaces.action_space)
    noise = 0.0 if config.fork is None else config.fork.weight_noise
    is_same = parent.algorithm.name == config.algorithm.name
    if isinstance(policy, QPolicy) and not is_same:
        load_q_network(policy, checkpoint.policy())
    else:
        name = str(checkpoint.path / "policy.safetensors")
        load_module_tensors(policy, checkpoint.policy(), name)
    if noise:
        add_weight_noise(policy, noise, np.random.default_rng(seed_for(config.seed, _NOISE)))
    return None if is_same and not noise else module_tensors(policy)


def add_weight_noise(policy: BasePolicy, sigma: float, rng: np.random.Generator) -> None:
    """Change the weights in place: W <- W + sigma rms(W) E, with E ~ N(0, 1) for each number.

    W is the weight of a convolution or a linear layer, on the CPU, and rms(W) is the root mean
    square of its numbers. Biases and normalisation layers do not change. DQN's target network
    becomes a copy of the changed network.

    Additive noise on all weights follows Such et al. 2017 (Deep Neuroevolution), who use 0.002 for
    all layers of the same network. Noise in proportion to the weights, without biases and
    normalisation layers, follows Khadka and Tumer (2018, ERL), who use a tenth of each weight's own
    size for up to a tenth of a layer's weights. Here it is in proportion to the layer's rms instead
    of each weight's own size, so that weights near 0 move as well.

    Args:
        rng: draws float32 numbers, layer by layer in the order of `policy.modules()`.
    """
    networks: Sequence[nn.Module] = [policy]
    if isinstance(policy, QPolicy):
        networks = policy.q_networks
    network = networks[0]
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                values = layer.weight.numpy()
                size = np.sqrt(np.mean(np.square(values, dtype=np.float64)))
                noise = rng.standard_normal(values.shape, dtype=np.float32)
                layer.weight += torch.from_numpy(np.float32(sigma * size) * noise)
    for copied in networks[1:]:
        copied.load_state_dict(network.state_dict())
