"""Files of a tiny mixture with real members and a real learner."""

from pathlib import Path

MEMBER = """\
game: duel
total_timesteps: 1000
run_dir: x
device: cpu
env: {n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}
algorithm:
  {name: pqn, n_steps: 16, batch_size: 16, n_epochs: 1, learning_rate: {start: 1.0e-3, end: 0}}
evaluation: {n_envs: 2}
checkpoints: {every_timesteps: 32, keep_last: 1}
"""
LEARNER = """\
game: duel
total_timesteps: 1000
run_dir: x
device: cpu
env: {n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}
algorithm:
  name: dqn
  replay: {capacity: 200}
  learning_starts: 8
  batch_size: 8
  layer_norm: channels
evaluation: {n_envs: 2}
checkpoints: {every_timesteps: 32, keep_last: 1}
"""
_MIXTURE = """\
kind: mixture
run_dir: PLACE
member: {config: member.yaml}
members: 2
rounds: 2
timesteps_per_round: 64
learner:
  config: learner.yaml
  member_shares: {best_member: 2}
  learn_from:
    own_share: 0.5
    offline: {evaluate_every_gradient_steps: 4, save_every_gradient_steps: 2}
learner_per_round: {gradient_steps: 6, timesteps: 32}
clone: {only_if_better: false}
fitness: {episodes: 2, metric: mean_reward}
champion: {candidates: 2, episodes: 2}
"""


LIVE_BATCH, LIVE_OWN, LIVE_TIMESTEPS = 8, 2, 192
_LIVE = """\
kind: mixture
mode: live
run_dir: PLACE
member: {config: member.yaml, checkpoints: {every_timesteps: 64}}
members: 2
rounds: 2
timesteps_per_round: 640
learner:
  config: learner.yaml
  member_shares: {1: 3}
  learn_from: {own_share: 0.25, follow_every_s: 0.1}
  checkpoints: {every_timesteps: 64}
learner_per_round: {timesteps: 96}
fitness: {episodes: 2, metric: mean_reward}
champion: {candidates: 2, episodes: 2}
"""


def write_mixture(folder: Path, place: Path) -> Path:
    """Write the file of a mixture that lives in `place`, and its runs' configs next to it."""
    return _written(folder, place, _MIXTURE)


def write_live_mixture(folder: Path, place: Path) -> Path:
    """Write the file of a live mixture, like `write_mixture`."""
    return _written(folder, place, _LIVE)


def _written(folder: Path, place: Path, mixture: str) -> Path:
    (folder / "member.yaml").write_text(MEMBER, encoding="utf-8")
    (folder / "learner.yaml").write_text(LEARNER, encoding="utf-8")
    file = place.with_suffix(".yaml")
    file.write_text(mixture.replace("PLACE", str(place)), encoding="utf-8")
    return file
