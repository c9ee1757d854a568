"""Whether exploring again after a break helps: forks of a PQN run with exploration restarted.

    python -m benchmarks.recovery [--folder runs/recovery] [--seeds 0 1 2] [--smoke]
    python -m benchmarks.recovery --report

A run of `configs/duel_pqn.yaml` is stopped at half of its timesteps and continued in forks:
with exploration restarted at 1.0, at 0.3, and not at all. The question, the definitions and what
was fixed before the first run are in docs/research/learning-from-others.md. The benchmark can be
stopped at any time, and the same command continues it. `--report` prints tables and writes
recovery.png from the results so far.
"""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean

from benchmarks.arms import (
    Experiment,
    Result,
    Task,
    bring_to,
    game_rl_errors,
    lineage,
    newest,
    settings,
)
from benchmarks.line_plot import Line, draw_rates
from game_rl.files.run_dir import RunDir

_CONFIG = "configs/duel_pqn.yaml"
_FRAME_SKIP = 8
_ARMS: dict[str, float | None] = {"not_restarted": None, "from_0.3": 0.3, "from_1.0": 1.0}
_TIMESTEPS_PER_S = 900.0  # guessed, on two idle cores
_FIGHTS_PER_S = 8.0

Curve = list[tuple[int, float]]


@dataclass(frozen=True)
class Plan:
    """The settings that are fixed before the first run.

    Attributes:
        total_timesteps: timesteps of a run, which is stopped at half of them.
        over: timesteps over which a restart's exploration falls.
        sizes: overrides that make everything tiny.
    """

    seeds: tuple[int, ...]
    level: str = "level_1"
    total_timesteps: int = 300_000
    over: int = 40_000
    every_timesteps: int = 10_000
    fights: int = 100
    sizes: tuple[str, ...] = ()


SMOKE = Plan(
    seeds=(0,),
    total_timesteps=512,
    over=128,
    every_timesteps=64,
    fights=2,
    sizes=(
        "env.n_envs=2",
        "env.n_workers=1",
        "env.max_episode_timesteps=25",
        "algorithm.n_steps=16",
        "algorithm.batch_size=16",
        "evaluation.n_envs=2",
    ),
)


def tasks(plan: Plan, experiment: Experiment) -> list[Task]:
    """Return for each seed the base run, then its forks arm by arm."""
    half = plan.total_timesteps // 2
    work_s = half / _TIMESTEPS_PER_S + half / plan.every_timesteps * plan.fights / _FIGHTS_PER_S
    found = []
    for seed in plan.seeds:
        base = partial(_base, plan, experiment, seed)
        found.append(Task(f"base_seed{seed}", work_s, base))
        for arm in _ARMS:
            fork = partial(_fork, plan, experiment, arm, seed)
            found.append(Task(f"{arm}_seed{seed}", work_s, fork))
    return found


def _base(plan: Plan, experiment: Experiment, seed: int) -> Result:
    place, half = experiment.run_dir(f"base_seed{seed}"), plan.total_timesteps // 2
    first = settings(
        seed=seed,
        env__start_states=f"[{plan.level}]",
        total_timesteps=plan.total_timesteps,
        evaluation__every_timesteps=plan.every_timesteps,
        evaluation__episodes=plan.fights,
        evaluation__final_episodes=1,
        checkpoints__every_timesteps=half,
        checkpoints__keep_last=1,
        recording__episodes=0,
    )
    sizes = [word for size in plan.sizes for word in ("--set", size)]
    bring_to(place, ["--config", _CONFIG, *first, *sizes], until=half)
    return {"broken_at": newest(place), "curve": _curve(place), **lineage(place)}


def _fork(plan: Plan, experiment: Experiment, arm: str, seed: int) -> Result:
    base, place = (experiment.run_dir(f"{name}_seed{seed}") for name in ("base", arm))
    broken_at, start = newest(base), _ARMS[arm]
    restart = f"[{{at: {broken_at}, start: {start}, over: {plan.over}}}]"
    again = {} if start is None else {"algorithm__exploration__restarts": restart}
    bring_to(place, ["--fork", f"{base}@{broken_at}", *settings(**again)])
    after = [point for point in _curve(place) if point[0] > broken_at]
    return {"broken_at": broken_at, "curve": after, **lineage(place)}


def _curve(run_dir: Path) -> Curve:
    """Return the success rate by timestep."""
    with RunDir(run_dir).evaluations.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [(int(row["timesteps"]), float(row["success_rate"])) for row in rows]


# ---------------------------------------------------------------------- results


def recovered_after(curve: Curve, *, reference: float, broken_at: int) -> int | None:
    """Return the timesteps from the break to the first of two evaluations that reach `reference`.

    The two must follow each other, and a tie counts. None if there are no such two.
    """
    for (timesteps, rate), (_, following) in pairwise(curve):
        if min(rate, following) >= reference:
            return timesteps - broken_at
    return None


@dataclass(frozen=True)
class Recovery:
    """The recovery of one arm and seed; rates are 0..1, timesteps count from the break."""

    before: float
    recovered: int | None
    nearly: int | None
    lowest: float
    average: float
    last: float


_NEARLY = 0.03
_BEFORE = 3  # evaluations, as adjacent ones differ by far more than 100 fights can explain


def recovery_of(base: Result, fork: Result) -> Recovery:
    before = mean(rate for _, rate in curve_of(base)[-_BEFORE:])
    broken_at, curve = fork["broken_at"], curve_of(fork)
    assert isinstance(broken_at, int)
    rates = [rate for _, rate in curve]
    recovered, nearly = (
        recovered_after(curve, reference=reference, broken_at=broken_at)
        for reference in (before, before - _NEARLY - 1e-9)
    )
    return Recovery(before, recovered, nearly, min(rates), mean(rates), rates[-1])


def curve_of(result: Result) -> Curve:
    points = result["curve"]
    assert isinstance(points, list)
    return [(int(timesteps), float(rate)) for timesteps, rate in points]


def report(plan: Plan, experiment: Experiment) -> None:
    results = experiment.results
    print(
        "| exploration | seed | before | as good after | within 3 points after | lowest | mean "
        "| last |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for arm in _ARMS:
        rows = [
            (seed, recovery_of(results[f"base_seed{seed}"], results[f"{arm}_seed{seed}"]))
            for seed in plan.seeds
            if {f"base_seed{seed}", f"{arm}_seed{seed}"} <= results.keys()
        ]
        for seed, found in rows:
            print(_row(arm, str(seed), found, plan))
        if rows:
            print(_mean_row(arm, [found for _, found in rows], plan))
    print()
    _print_cost(plan, results)
    place = experiment.folder / "recovery.png"
    draw_rates(_lines(plan, results), place, x="timesteps", y="success rate")
    print(f"\nplot: {place}")


def _row(arm: str, seed: str, found: Recovery, plan: Plan) -> str:
    waits = [_wait(each, plan) for each in (found.recovered, found.nearly)]
    rates = [f"{rate:.0%}" for rate in (found.lowest, found.average, found.last)]
    return f"| {arm} | {seed} | {' | '.join([f'{found.before:.0%}', *waits, *rates])} |"


def _wait(timesteps: int | None, plan: Plan) -> str:
    if timesteps is None:
        return f"not within {plan.total_timesteps // 2:,}"
    return f"{timesteps:,} ({timesteps * _FRAME_SKIP:,} frames)"


def _mean_row(arm: str, found: Sequence[Recovery], plan: Plan) -> str:
    """Return the row of means.

    A run that never recovered counts with all its timesteps, so the mean is a lower bound.
    """
    cells = []
    for name in ("recovered", "nearly"):
        waits = [getattr(each, name) for each in found]
        known = [plan.total_timesteps // 2 if wait is None else wait for wait in waits]
        cells.append(f"{'at least ' if None in waits else ''}{mean(known):,.0f}")
    rates = [
        f"{mean(getattr(each, name) for each in found):.0%}"
        for name in ("lowest", "average", "last")
    ]
    before = f"{mean(each.before for each in found):.0%}"
    return f"| {arm} | **mean** | {' | '.join([before, *cells, *rates])} |"


def _print_cost(plan: Plan, results: dict[str, Result]) -> None:
    print("| run | own timesteps | frames | with all that it comes from | frames | seconds |")
    print("|---|---|---|---|---|---|")
    for arm in ("base", *_ARMS):
        for seed in plan.seeds:
            if (found := results.get(f"{arm}_seed{seed}")) is not None:
                names = ("own_timesteps", "own_frames", "total_timesteps", "total_frames")
                cells = " | ".join(f"{found[name]:,}" for name in names)
                print(f"| {arm}, seed {seed} | {cells} | {found['seconds']:,.0f} |")


def _lines(plan: Plan, results: dict[str, Result]) -> list[Line]:
    """Return the curves; those after the break begin where the base ends."""
    found = []
    for arm in ("base", *_ARMS):
        curves = []
        for seed in plan.seeds:
            base, own = (results.get(f"{name}_seed{seed}") for name in ("base", arm))
            if base is not None and own is not None:
                before = [] if arm == "base" else curve_of(base)[-1:]
                curves.append((*before, *curve_of(own)))
        found.append(Line(arm, tuple(curves)))
    return [line for line in found if line.curves]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--level", default="level_1", help="start state of all fights")
    parser.add_argument("--smoke", action="store_true", help="everything tiny, in minutes")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    plan = SMOKE if arguments.smoke else Plan(tuple(arguments.seeds), arguments.level)
    folder = arguments.folder or Path("runs/recovery_smoke" if arguments.smoke else "runs/recovery")
    experiment = Experiment(folder, asdict(plan))
    with game_rl_errors():
        experiment.open()
        if not arguments.report:
            experiment.run(tasks(plan, experiment))
        report(plan, experiment)


if __name__ == "__main__":
    main()
