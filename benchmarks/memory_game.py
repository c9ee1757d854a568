"""Whether an agent remembers: trainings of `courier` with and without a memory.

    python -m benchmarks.memory_game --folder FOLDER [--arms none lstm gru] [--roads 25 100 300]

A sign is shown, a road of so many steps is walked, and one of two gates has the sign. Each training
begins from `configs/courier_ppo.yaml`, but its agent sees what a player sees at that moment alone:
the part `view`, or with `--screen` one frame of the screen. The table has the share of 200 fresh
episodes that lead home, with the most probable actions. A player without memory reaches 50 %. The
arms:

    none                   PPO as it is
    lstm, gru              PPO with `algorithm.memory` of that kind
    lstm_uniform           the LSTM with `init: uniform`, as PyTorch and sb3-contrib begin

A sequence is at least twice as long as the road, up to 1,024 timesteps, so that most gradients
reach back from the gate to the sign; the rollout of an env is one sequence in all arms. A training
ends before `--timesteps` where 20 episodes of two evaluations in a row and 100 more lead home, 97 %
of each. An arm, road and seed that has a result in the folder is not trained again. Ctrl-C and the
same command go on.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import game_rl
from benchmarks.arms import Experiment, Result, Task, game_rl_errors

_ARMS = ("none", "lstm", "gru", "lstm_uniform")
_SEQUENCES = {25: 64, 100: 256, 300: 1_024, 1_000: 1_024}
"""Timesteps of a sequence, by the steps of the road."""
_SEQUENCES_A_BATCH = 4
_EPISODES = 200
_SEED = 9000


def _changes(arm: str, road: int, *, screen: bool, size: int) -> Sequence[str]:
    """Return what a training changes in the config."""
    sequence = _SEQUENCES[road]
    seen = "{size: half, colour: grey}" if screen else "{screen: false, parts: [view]}"
    changes = [
        f"env.start_states=[road_{road}]",
        f"env.observation={seen}",
        f"env.max_episode_timesteps={max(200, 6 * road)}",
        f"algorithm.n_steps={sequence}",
        f"algorithm.batch_size={_SEQUENCES_A_BATCH * sequence}",
        f"evaluation.every_timesteps={max(20_000, 500 * road)}",
        "evaluation.baselines=false",
    ]
    if screen:
        changes.append("algorithm.network={screen: nature, hidden: [128]}")
    if arm != "none":
        kind, _, init = arm.partition("_")
        values = f"kind: {kind}, size: {size}, sequence: {sequence}, init: {init or 'chrono'}"
        changes.append(f"algorithm.memory={{{values}}}")
    return changes


def trained(changes: Sequence[str], road: int, timesteps: int, run_dir: Path) -> Result:
    """Train an arm up to a timestep, and return the share of fresh episodes that lead home."""
    if run_dir.exists():
        ended = game_rl.resume(run_dir, until=timesteps, progress=False)
    else:
        config = game_rl.load_config("courier_ppo", *changes, f"run_dir={run_dir}")
        ended = game_rl.train(config, until=timesteps, progress=False)
    result = game_rl.evaluate(
        run_dir,
        "latest",
        episodes=_EPISODES,
        deterministic=True,
        seed=_SEED,
        start_state=f"road_{road}",
    )
    at_a_gate = sum(end.variables["chosen"] != 0 for end in result.ends)
    return {
        "home": result.success_rate,
        "at_a_gate": at_a_gate / _EPISODES,
        "timesteps": ended.timesteps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="of runs and results")
    parser.add_argument("--arms", nargs="+", default=list(_ARMS[:3]), choices=_ARMS)
    parser.add_argument(
        "--roads", type=int, nargs="+", default=[100], choices=_SEQUENCES, help="steps of the road"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--timesteps", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=64, help="units of the memory")
    parser.add_argument("--screen", action="store_true", help="show the screen, not the part view")
    arguments = parser.parse_args()
    plan = {name: getattr(arguments, name) for name in ("timesteps", "size", "screen")}
    experiment = Experiment(arguments.folder, plan)

    def task(arm: str, road: int, seed: int) -> Task:
        name = f"{arm}_{road}_{seed}"
        run_dir = experiment.run_dir(name).resolve()
        changes = [
            *_changes(arm, road, screen=arguments.screen, size=arguments.size),
            f"total_timesteps={arguments.timesteps}",
            f"seed={seed}",
        ]
        return Task(name, 900, lambda: trained(changes, road, arguments.timesteps, run_dir))

    tasks = {
        (arm, road, seed): task(arm, road, seed)
        for seed in arguments.seeds
        for road in arguments.roads
        for arm in arguments.arms
    }
    with game_rl_errors():
        experiment.open()
        experiment.run(list(tasks.values()))
    seen = "one frame of the screen" if arguments.screen else "the part view"
    print(f"at home of {_EPISODES} episodes with {seen}, after so many timesteps")
    print(f"{'memory':<14}{'road':>6}" + "".join(f"{f'seed {s}':>20}" for s in arguments.seeds))
    for arm in arguments.arms:
        for road in arguments.roads:
            found = [experiment.results[tasks[arm, road, s].name] for s in arguments.seeds]
            cells = (f"{result['home']:.1%} {result['timesteps']:>11,}" for result in found)
            print(f"{arm:<14}{road:>6}" + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
