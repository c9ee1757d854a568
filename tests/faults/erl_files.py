"""Files of a tiny population whose members only play, with a real learner."""

from pathlib import Path

from tests.faults.mixture_files import LEARNER, MEMBER

_ERL = """\
kind: population
run_dir: PLACE
member: {config: member.yaml, algorithm: {n_epochs: 0}}
members: 2
generations: 3
timesteps_per_generation: 64
selection: {share: 0.5}
mutation: {weights: {sigma: 0.05}}
control: 0
learner:
  config: learner.yaml
  inject_every: 2
  member_shares: {best_member: 2}
  learn_from:
    own_share: 0.5
    offline: {evaluate_every_gradient_steps: 4, save_every_gradient_steps: 2}
learner_per_generation: {gradient_steps: 6, timesteps: 32}
fitness: {episodes: 2, metric: mean_reward}
champion: {candidates: 2, episodes: 2}
"""


def write_erl(folder: Path, place: Path) -> Path:
    """Write the file of a population that lives in `place`, and its runs' configs next to it."""
    (folder / "member.yaml").write_text(MEMBER, encoding="utf-8")
    (folder / "learner.yaml").write_text(LEARNER, encoding="utf-8")
    file = place.with_suffix(".yaml")
    file.write_text(_ERL.replace("PLACE", str(place)), encoding="utf-8")
    return file
