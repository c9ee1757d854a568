"""Grouping of folders into arms: an arm's configs differ by nothing but the seed."""

import fnmatch
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from game_rl.errors import UsageError
from game_rl.experiments.compare.found import Found
from game_rl.experiments.compare.outcome import Arm, Metric, Outcome


def grouped(found: Sequence[Found], patterns: Mapping[str, str]) -> dict[str, list[Found]]:
    """Return the folders of each arm, in the order in which they were named.

    Args:
        patterns: by an arm's name, the shell pattern of its folders' paths or names. A folder that
            matches no pattern is grouped by its config.

    Raises:
        UsageError: a pattern matches no folder.
    """
    arms: dict[str, list[Found]] = {name: [] for name in patterns}
    others: dict[str, list[Found]] = {}
    for each in found:
        name = next((n for n, pattern in patterns.items() if _matches(each.path, pattern)), None)
        if name is not None:
            arms[name].append(each)
        else:
            others.setdefault(json.dumps(each.settings, sort_keys=True), []).append(each)
    empty = [name for name, members in arms.items() if not members]
    if empty:
        raise UsageError(
            f"--arm {empty[0]}={patterns[empty[0]]}: none of the folders named matches the "
            "pattern; write it as in a shell, such as 'runs/pqn_*'"
        )
    names = _names(list(others.values()), taken=set(arms))
    return arms | dict(zip(names, others.values(), strict=True))


def arms_of(groups: Mapping[str, Sequence[Found]]) -> tuple[list[Arm], bool]:
    """Return arms with their scores, and whether the scores are those of final evaluations.

    If any run is not complete, the scores of all runs are those of their newest evaluations.

    Raises:
        UsageError: a run has neither failed nor ever been evaluated, or an arm has a seed twice.
    """
    everybody = [each for members in groups.values() for each in members]
    is_final = all(each.final is not None for each in everybody if not each.failure)
    for each in everybody:
        if each.last is None and each.final is None and not each.failure:
            raise UsageError(
                f"{each.path} has no evaluation yet; train it further, or leave it out"
            )
    arms = []
    for name, members in groups.items():
        ordered = sorted(members, key=lambda each: each.seed)
        arms.append(Arm(name, tuple(_outcome(each, is_final=is_final) for each in ordered)))
    for arm in arms:
        twice = [seed for seed in arm.seeds if arm.seeds.count(seed) > 1]
        if twice:
            raise UsageError(
                f"arm {arm.name} has seed {twice[0]} more than once; name each run once, or split "
                "the arm with --arm NAME=PATTERN"
            )
    return arms, is_final


def metric_of(arms: Sequence[Arm]) -> Metric:
    """Return the success rate if the games of all runs define success, else the mean reward."""
    scores = [o.score for arm in arms for o in arm.outcomes if o.score is not None]
    return "success_rate" if all(s.success_rate is not None for s in scores) else "mean_reward"


def check_metric(arms: Sequence[Arm], metric: Metric) -> None:
    """Raise UsageError if a run has no value of the metric."""
    for arm in arms:
        for outcome in arm.outcomes:
            if outcome.score is not None and outcome.score.value(metric) is None:
                raise UsageError(
                    f"{outcome.name}: its game does not define success; compare by mean_reward, or "
                    "give the game file a success condition"
                )


def _outcome(found: Found, *, is_final: bool) -> Outcome:
    score = found.final if is_final else found.last
    return Outcome(
        name=str(found.path),
        seed=found.seed,
        score=None if found.failure else score,
        curve=found.curve,
        timesteps=found.timesteps,
        total_timesteps=found.total_timesteps,
        total_frames=found.total_frames,
        failure=found.failure,
    )


def _matches(path: Path, pattern: str) -> bool:
    return fnmatch.fnmatch(str(path), pattern) or fnmatch.fnmatch(path.name, pattern)


def _names(groups: Sequence[Sequence[Found]], *, taken: set[str]) -> Iterator[str]:
    """Yield each group's name: what its folders' names begin with, else the first one's name."""
    for members in groups:
        folders = [each.path.name for each in members]
        shared = _beginning(folders)
        name = shared.rstrip("_-.0123456789 ").removesuffix("seed").rstrip("_-. ") or folders[0]
        number = 2
        while name in taken:
            name, number = f"{folders[0]} ({number})", number + 1
        taken.add(name)
        yield name


def _beginning(words: Sequence[str]) -> str:
    """Return the longest text that all words begin with."""
    first = words[0]
    alike = (len(set(letters)) == 1 for letters in zip(*words, strict=False))
    return first[: sum(itertools.takewhile(bool, alike))]
