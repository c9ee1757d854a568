"""Learning from another run's Lake: alone, with own play, and with a teacher.

    python -m benchmarks.offline_learning [--folder runs/offline] [--seeds 0 1 2] [--smoke]
    python -m benchmarks.offline_learning --report

A PQN run at level 2 writes a Lake. DQN learns from it without playing, with and without that run as
its teacher. Forks continue from there and play for a quarter of the teacher's timesteps, with 0.2
and 0.5 of each batch from their own play. The question, the definitions and what was fixed before
the first run are in docs/research/learning-from-others.md. The benchmark can be stopped at any
time, and the same command continues it. `--report` prints tables and writes offline.png from the
results so far.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean

from benchmarks.arms import (
    Experiment,
    Result,
    Task,
    bring_to,
    game_rl,
    game_rl_errors,
    lineage,
    newest,
    settings,
)
from benchmarks.line_plot import Line, draw_rates

_TEACHER = "configs/duel_pqn.yaml"
_STUDENT = "configs/duel_dqn.yaml"
_FIGHTS_SEED = 7_000_000  # seed of the fights that are reported, used for nothing else
_OWN_SHARES = (0.2, 0.5)
_SHORT_OF = 0.03  # hoped-for distance of the best arm from the teacher's success rate
_SUMS = ("own_timesteps", "own_frames", "total_timesteps", "total_frames")

# guessed, on two idle cores
_PQN_PER_S, _DQN_PER_S, _GRADIENT_STEPS_PER_S, _FIGHTS_PER_S = 900.0, 400.0, 60.0, 12.0


@dataclass(frozen=True)
class Plan:
    """The settings that are fixed before the first run.

    Attributes:
        share: share of the teacher's timesteps that an arm plays itself.
        fights: number of reported fights of each policy.
        teacher_sizes, student_sizes: overrides that make everything tiny.
    """

    seeds: tuple[int, ...]
    teacher_timesteps: int = 300_000
    share: float = 0.25
    gradient_steps: int = 10_000
    fights: int = 400
    evaluation_fights: int = 50
    teacher_sizes: tuple[str, ...] = ()
    student_sizes: tuple[str, ...] = ()

    @property
    def own_timesteps(self) -> int:
        return round(self.teacher_timesteps * self.share)


_TINY = ("env.n_envs=2", "env.n_workers=1", "env.max_episode_timesteps=25", "evaluation.n_envs=2")
SMOKE = Plan(
    seeds=(0,),
    teacher_timesteps=512,
    gradient_steps=20,
    fights=2,
    evaluation_fights=2,
    teacher_sizes=(*_TINY, "algorithm.n_steps=16", "algorithm.batch_size=16"),
    student_sizes=(*_TINY, "algorithm.learning_starts=32", "algorithm.batch_size=16"),
)


def tasks(plan: Plan, experiment: Experiment) -> list[Task]:
    """Return the teacher's task, then for each seed two offline phases, each with its forks."""
    fights_s = plan.fights / _FIGHTS_PER_S
    playing_s = plan.own_timesteps / _DQN_PER_S + 5 * plan.evaluation_fights / _FIGHTS_PER_S
    found = [
        Task(
            "teacher",
            plan.teacher_timesteps / _PQN_PER_S + fights_s,
            partial(_teacher, plan, experiment),
        )
    ]
    for seed in plan.seeds:
        for is_taught in (False, True):
            offline = partial(_offline, plan, experiment, seed, is_taught=is_taught)
            name = arm_name(None, is_taught=is_taught)
            learning_s = plan.gradient_steps / _GRADIENT_STEPS_PER_S
            found.append(Task(f"{name}_seed{seed}", learning_s + fights_s, offline))
            for share in _OWN_SHARES:
                fork = partial(_fork, plan, experiment, seed, is_taught=is_taught, share=share)
                name = arm_name(share, is_taught=is_taught)
                found.append(Task(f"{name}_seed{seed}", playing_s + fights_s, fork))
    return found


def arm_name(own_share: float | None, *, is_taught: bool) -> str:
    """Return the arm's name; `own_share` is None for the offline phase alone."""
    start = "offline" if own_share is None else f"own_{own_share:g}"
    return f"{start}_taught" if is_taught else start


def arms() -> Iterator[str]:
    for own_share in (None, *_OWN_SHARES):
        for is_taught in (False, True):
            yield arm_name(own_share, is_taught=is_taught)


# ---------------------------------------------------------------------- runs


def _teacher(plan: Plan, experiment: Experiment) -> Result:
    place = experiment.run_dir("teacher")
    first = settings(
        seed=0,
        env__start_states="[level_2]",
        lake="{}",
        total_timesteps=plan.teacher_timesteps,
        evaluation__every_timesteps=plan.teacher_timesteps // 6,
        evaluation__episodes=plan.evaluation_fights,
        evaluation__final_episodes=1,
        checkpoints__every_timesteps=plan.teacher_timesteps // 2,
        checkpoints__keep_last=1,
        recording__episodes=0,
    )
    bring_to(place, ["--config", _TEACHER, *first, *_sized(plan.teacher_sizes)])
    return _judged(plan, place)


def _offline(plan: Plan, experiment: Experiment, seed: int, *, is_taught: bool) -> Result:
    place = experiment.run_dir(f"{arm_name(None, is_taught=is_taught)}_seed{seed}")
    steps, teacher = plan.gradient_steps, experiment.run_dir("teacher")
    phase = (
        f"{{gradient_steps: {steps}, evaluate_every_gradient_steps: {steps // 2}, "
        f"save_every_gradient_steps: {steps // 2}}}"
    )
    taught = f"{{run: {teacher}@{newest(teacher)}, keep_if_better: false}}"
    first = settings(
        seed=seed,
        env__start_states="[level_2]",
        lake="{}",
        algorithm__learning_starts=1_000,
        algorithm__replay__capacity=plan.own_timesteps,
        algorithm__exploration="{start: 0.1, end: 0.02, fraction: 0.2}",
        algorithm__learn_from=f"{{lakes: [{teacher}/lake], own_share: 0.5, offline: {phase}}}",
        algorithm__teacher=taught if is_taught else "null",
        total_timesteps=plan.own_timesteps,
        evaluation__every_timesteps=plan.own_timesteps // 5,
        evaluation__episodes=plan.evaluation_fights,
        evaluation__final_episodes=1,
        checkpoints__every_timesteps=plan.own_timesteps // 2,
        checkpoints__keep_last=1,
        recording__episodes=0,
    )
    bring_to(place, ["--config", _STUDENT, *first, *_sized(plan.student_sizes)], until=0)
    return _judged(plan, place)


def _fork(
    plan: Plan, experiment: Experiment, seed: int, *, is_taught: bool, share: float
) -> Result:
    name, parent = (arm_name(own, is_taught=is_taught) for own in (share, None))
    place = experiment.run_dir(f"{name}_seed{seed}")
    source = experiment.run_dir(f"{parent}_seed{seed}")
    changed = settings(algorithm__learn_from__own_share=share)
    bring_to(place, ["--fork", f"{source}@0", *changed])
    return _judged(plan, place)


def _sized(sizes: tuple[str, ...]) -> list[str]:
    return [word for size in sizes for word in ("--set", size)]


def _judged(plan: Plan, run_dir: Path) -> Result:
    """Evaluate the newest policy on fights that were not used to select anything."""
    fights = ["--episodes", str(plan.fights), "--seed", str(_FIGHTS_SEED)]
    found: Result = json.loads(
        game_rl("evaluate", str(run_dir), "--checkpoint", "latest", *fights, "--json")
    )
    names = ("episodes", "success_rate", "mean_reward", "q_minus_return", "policy_timesteps")
    return {name: found[name] for name in names} | lineage(run_dir)


# ---------------------------------------------------------------------- results


def report(plan: Plan, experiment: Experiment) -> None:
    results = experiment.results
    if (teacher := results.get("teacher")) is None:
        print("the teacher has no result yet")
        return
    _print_rates(plan, results, teacher)
    print()
    _print_cost(plan, results)
    place = experiment.folder / "offline.png"
    draw_rates(_lines(plan, results), place, x="own timesteps", y="success rate")
    print(f"\nplot: {place}")


def _print_rates(plan: Plan, results: dict[str, Result], teacher: Result) -> None:
    seeds = " | ".join(f"seed {seed}" for seed in plan.seeds)
    print(f"| arm | {seeds} | mean | minus the teacher's | mean Q − return, by seed |")
    print("|---|" + "---|" * (len(plan.seeds) + 3))
    rate = _number(teacher["success_rate"])
    dashes = " | ".join("" for _ in plan.seeds)
    q = _number(teacher["q_minus_return"])
    print(f"| teacher | {dashes} | {rate:.1%} | | {q:+.2f} |")
    best: tuple[float, str] | None = None
    for arm in arms():
        found = [results.get(f"{arm}_seed{seed}") for seed in plan.seeds]
        known = [each for each in found if each is not None]
        if not known:
            continue
        average = mean(_number(each["success_rate"]) for each in known)
        rates = " | ".join("" if e is None else f"{_number(e['success_rate']):.1%}" for e in found)
        qs = ", ".join(f"{_number(each['q_minus_return']):+.2f}" for each in known)
        print(f"| {arm} | {rates} | {average:.1%} | {100 * (average - rate):+.1f} points | {qs} |")
        if len(known) == len(found):
            best = max(best or (average, arm), (average, arm), key=lambda each: each[0])
    if best is not None:
        is_reached = best[0] >= rate - _SHORT_OF
        hoped = f"the teacher's {rate:.1%} − 3 points"
        print(f"\nbest arm: {best[1]}, {best[0]:.1%}; {hoped}: {'yes' if is_reached else 'no'}")


def _print_cost(plan: Plan, results: dict[str, Result]) -> None:
    print("| run | own timesteps | frames | with all that it comes from | frames | seconds |")
    print("|---|---|---|---|---|---|")
    for name in ("teacher", *(f"{arm}_seed{seed}" for arm in arms() for seed in plan.seeds)):
        if (found := results.get(name)) is not None:
            cells = " | ".join(f"{found[key]:,}" for key in _SUMS)
            print(f"| {name} | {cells} | {_number(found['seconds']):,.0f} |")


def _lines(plan: Plan, results: dict[str, Result]) -> list[Line]:
    """Return lines from the offline phase's end to the end of own play, and the teacher's rate."""
    rate = _number(results["teacher"]["success_rate"])
    found = [Line("teacher", (((0.0, rate), (float(plan.own_timesteps), rate)),))]
    for is_taught in (False, True):
        for share in _OWN_SHARES:
            names = (arm_name(None, is_taught=is_taught), arm_name(share, is_taught=is_taught))
            ends = [[results.get(f"{name}_seed{s}") for name in names] for s in plan.seeds]
            curves = [
                tuple((_number(e["own_timesteps"]), _number(e["success_rate"])) for e in pair if e)
                for pair in ends
                if None not in pair
            ]
            found.append(Line(names[1], tuple(curves)))
    return [line for line in found if line.curves]


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--smoke", action="store_true", help="everything tiny, in minutes")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    plan = SMOKE if arguments.smoke else Plan(tuple(arguments.seeds))
    folder = arguments.folder or Path("runs/offline_smoke" if arguments.smoke else "runs/offline")
    experiment = Experiment(folder, asdict(plan))
    with game_rl_errors():
        experiment.open()
        if not arguments.report:
            experiment.run(tasks(plan, experiment))
        report(plan, experiment)


if __name__ == "__main__":
    main()
