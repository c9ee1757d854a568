"""Configs of the trainings into which faults are injected."""

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from game_rl.games.definition import Game

_CONFIG = """\
game: {game}
total_timesteps: {total}
run_dir: {run_dir}
device: cpu
env:
  {{n_envs: 4, n_workers: 2, frame_skip: 8, max_episode_timesteps: 40,
    observation: {{colour: {colour}{parts}}}}}
algorithm: {algorithm}
lake: {lake}
evaluation:
  {{every_timesteps: {evaluate_every}, episodes: 2, final_episodes: 2,
    deterministic: {deterministic}, baselines: false}}
checkpoints: {{every_timesteps: 32, keep_last: {keep_last}, save_replay_buffer: {has_replay}}}
recording: {{episodes: 0}}
"""
_WRAPPERS = "[tests.faults.own_wrappers:Novelty, {tests.faults.own_wrappers:Novelty: {scale: 0.5}}]"
_POOL = (
    "{save_on: {new_maximum: player_x}, size: 12, share: 0.5, choose: success, goal: reward, "
    "migrate: furthest}"
)
_CALLBACKS = "[{tests.faults.own_callbacks:RewardScale: {every: 3}}]"
_DQN = (
    "{{name: dqn, replay: {replay}, n_step: 3, double_q: true, learning_starts: 64, train_freq: 8, "
    "gradient_steps: 2, batch_size: 64, target_update_interval: 64, learning_rate: 1e-3}}"
)
_LEARN_FROM = "{lakes: [LAKE], own_share: {start: 0.3, end: 0.8, until: 400}, offline: OFFLINE}"
_PLAYED = "learn_from: {played: {episodes: PLAYED, clone: {n_epochs: 3}}}"
_OFFLINE = "{gradient_steps: 24, evaluate_every_gradient_steps: 8, save_every_gradient_steps: 6}"
_PPO = "{n_steps: 8, batch_size: 32, n_epochs: 2, learning_rate: {start: 1e-3, end: 1e-4}}"


def _learning_dqn(offline: str) -> str:
    learn_from = _LEARN_FROM.replace("OFFLINE", offline)
    return f"{_DQN.format(replay='{capacity: 256}')[:-1]}, learn_from: {learn_from}}}"


ALGORITHMS = {  # each can be saved every 32 timesteps
    "ppo": _PPO,
    "ppo-lake": _PPO,
    "ppo-own": _PPO,
    "ppo-potential": _PPO,
    "ppo-pool": _PPO,
    "ppo-novelty": _PPO,
    "ppo-played": f"{_PPO[:-1]}, {_PLAYED}}}",
    "ppo-memory": f"{_PPO[:-1]}, memory: {{size: 16, sequence: 4}}}}",
    "ppo-curiosity": f"{_PPO[:-1]}, curiosity: {{kind: rnd}}}}",
    "pqn": "{name: pqn, n_steps: 8, batch_size: 32, n_epochs: 2}",
    "dqn": _DQN.format(replay="{capacity: 256}"),
    "dqn-lake": _DQN.format(replay="{capacity: 256}"),
    "dqn-own": _DQN.format(replay="{capacity: 256}"),
    "dqn-mixed": _learning_dqn("null"),
    "dqn-offline": _learning_dqn(_OFFLINE),
    "dqn-played": f"{_DQN.format(replay='{capacity: 256}')[:-1]}, {_PLAYED}}}",
    "dqn-teacher": _DQN.format(replay="{capacity: 256}")[:-1]
    + ", teacher: {run: TEACHER, keep_if_better: false}}",
}
_WITH_REPLAY = ("dqn", "dqn-own", "dqn-teacher", "dqn-mixed", "dqn-offline", "dqn-played")
_WITH_LAKE = ("ppo-lake", "pqn", "dqn-lake")
_WITH_OWN_PARTS = ("ppo-own", "dqn-own")  # state of theirs decides about what is learned
_WITH_POTENTIAL = ("ppo-potential",)
_POTENTIAL = "rewards: {progress: {potential: EXPLORED, weight: 0.05}}"
_WITH_POOL = ("ppo-pool",)  # which grows
WITH_NOVELTY = ("ppo-novelty",)
_NOVELTY = "  novelty: {variables: [player_x], on: first_visit, per_run: true, weight: 0.3}\n"
WITH_PLAYED = ("ppo-played", "dqn-played")
GAMES = ("duel", "beacon", "seasons")


@dataclass(frozen=True)
class Setting:
    """The algorithm, the game, the colours and the parts of observations of a training.

    `normalizes`: it learns from normalised rewards.
    """

    algorithm: str = "ppo"
    game: str = "duel"
    colour: str = "grey"
    parts: tuple[str, ...] = ()
    normalizes: bool = False


@dataclass(frozen=True, kw_only=True)
class Length:
    """The length of a training in timesteps, and its checkpoints.

    A short run is so short that each of its disk operations can be made to fail in turn. It saves
    four times, evaluates twice and deletes an old checkpoint.
    """

    total: int = 768
    evaluate_every: int = 128
    keep_last: int = 2


LONG = Length()
SHORT = Length(total=128, evaluate_every=64, keep_last=1)


def write_novel_game(bundled: Path, folder: Path) -> None:
    """Copy a bundled game's folder, with a reward for places that the run has rarely visited."""
    shutil.copytree(bundled, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "game.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("\nrewards:\n", f"\nrewards:\n{_NOVELTY}"), encoding="utf-8")


def write_played_episodes(game: Game, folder: Path) -> None:
    """Write three recorded episodes of random buttons."""
    folder.mkdir()
    rng = random.Random(0)
    for seed in range(3):
        episode = {
            "start_state": next(iter(game.definition.start_states)),
            "seed": seed,
            "frame_skip": 8,
            "actions": rng.choices(game.action_names, k=25),
        }
        (folder / f"{seed}.json").write_text(json.dumps(episode), encoding="utf-8")


def config_text(
    setting: Setting,
    length: Length,
    *,
    run_dir: Path,
    others: Path,
    teacher: Path,
    explored: Path,
    novel: Path,
    played: Path,
) -> str:
    """Return the config of a run in `run_dir`.

    Args:
        setting: algorithm, game, colours and parts.
        length: timesteps and checkpoints.
        run_dir: directory of the run.
        others: run whose Lake an algorithm with `learn_from` uses.
        teacher: run whose policy an algorithm with a `teacher` uses.
        explored: folder of an exploration whose ways are rewarded.
        novel: folder of the game with a reward of novelty.
        played: folder of recorded episodes.
    """
    algorithm = setting.algorithm
    section = ALGORITHMS[algorithm].replace("LAKE", str(others / "lake"))
    if setting.normalizes:
        section = f"{section[:-1]}, reward: {{normalize: true, clip: 10}}}}"
    text = _CONFIG.format(
        game=novel / "game.yaml" if algorithm in WITH_NOVELTY else setting.game,
        colour=setting.colour,
        parts=f", parts: [{', '.join(setting.parts)}]" if setting.parts else "",
        run_dir=run_dir,
        total=length.total,
        algorithm=section.replace("TEACHER", str(teacher)).replace("PLAYED", str(played)),
        lake="{}" if algorithm in _WITH_LAKE else "null",
        deterministic=str(not algorithm.startswith("ppo")).lower(),
        has_replay=str(algorithm in _WITH_REPLAY).lower(),
        evaluate_every=length.evaluate_every,
        keep_last=length.keep_last,
    )
    if algorithm in _WITH_OWN_PARTS:  # an earlier commit, which reads the others, has no such keys
        text = text.replace("}}\nalgorithm", f"}}, wrappers: {_WRAPPERS}}}\nalgorithm", 1)
        text += f"callbacks: {_CALLBACKS}\n"
    if algorithm in _WITH_POTENTIAL:
        reward = _POTENTIAL.replace("EXPLORED", str(explored))
        text = text.replace("}}\nalgorithm", f"}}, {reward}}}\nalgorithm", 1)
    if algorithm in _WITH_POOL:
        text = text.replace("}}\nalgorithm", f"}}, pool: {_POOL}}}\nalgorithm", 1)
    return text
