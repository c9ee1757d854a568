"""The progress of a study, and its findings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from shlex import quote
from statistics import fmean
from typing import Any

from game_rl.config.experiments.experiment import STAGES
from game_rl.config.experiments.study_config import ExperimentArm, Study
from game_rl.errors import ExperimentError
from game_rl.events.event_log import read_events
from game_rl.events.run_view import read_tail
from game_rl.experiments.compare.compared_folders import read_totals
from game_rl.experiments.compare.comparison import (
    Comparison,
    Metric,
    Rule,
    check_metric,
    compare_arms,
)
from game_rl.experiments.compare.comparison_report import Cells, score_words, share_words
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import MembersProgress, experiment_status, shares_done
from game_rl.experiments.records import fitness_of
from game_rl.experiments.study.study_registration import Registration, registered
from game_rl.experiments.study.study_results import (
    Pair,
    PairResult,
    Reached,
    StudyDir,
    arm_of_results,
    pairs_of,
    read_results,
    read_study_result,
    study_dir,
)
from game_rl.statistics import percent


@dataclass(frozen=True)
class StudyFindings:
    """The comparison of a complete study.

    Attributes:
        notes: the plan in words, and the deviations from it.
        breaks: a table of the scores across breaks; empty if no arm is an experiment.
    """

    study: Study
    registration: Registration
    comparison: Comparison
    notes: tuple[str, ...]
    breaks: tuple[str | Cells, ...]


def study_findings(study: Study) -> StudyFindings:
    """Judge a study that has all its results.

    Raises:
        UsageError: it is not registered.
        ExperimentError: a file, a config, the code or a result is not what was registered, or
            results are missing.
    """
    registration = registered(study)
    folder = study_dir(study.config)
    results = read_results(study, folder, registration=registration.sha256())
    there = {(each.arm, each.seed) for found in results.values() for each in found}
    missing = [pair.name for pair in pairs_of(study) if (pair.arm, pair.seed) not in there]
    if missing:
        raise ExperimentError(
            f"{len(missing)} of {len(missing) + len(there)} results are missing ({missing[0]}, for "
            "example), and a study is judged only once it is complete; make them with python "
            f"train.py --config {quote(str(study.file))}"
        )
    arms = [arm_of_results(name, found, folder) for name, found in results.items()]
    check_metric(arms, study.config.metric)
    every = [each for found in results.values() for each in found]
    notes = (*_plan_notes(study, registration), *_deviations(study, every), *_unsealed(results))
    of_arms = {name: [each.reached for each in found] for name, found in results.items()}
    breaks = tuple(break_lines(of_arms, study.config.metric))
    config = study.config
    rule = Rule(
        metric=config.metric,
        paired=config.paired,
        alpha=config.decision.alpha,
        minimum=config.decision.minimum,
        margin=config.decision.margin,
    )
    # the primary comparison is judged alone, and the others together, with Holm's correction
    judged = compare_arms(arms, rule, [(config.primary.arm, config.primary.against)])
    others = compare_arms(arms, rule, [(pair.arm, pair.against) for pair in config.others])
    judged = replace(judged, differences=(*judged.differences, *others.differences))
    return StudyFindings(study, registration, judged, notes, breaks)


def _plan_notes(study: Study, registration: Registration) -> Iterator[str]:
    config = study.config
    pair = config.primary
    test = config.test
    yield f"registered {registration.registered:%Y-%m-%d %H:%M} UTC, {registration.sha256()[:16]}"
    yield (
        f"the question is answered by {pair.arm} against {pair.against}; all other comparisons "
        "are exploratory"
    )
    yield (
        f"score of a seed: {config.metric} over {test.episodes} episodes of seed {test.seed:,}, "
        f"played by the {config.selection} checkpoint; budget {config.budget.timesteps:,} "
        "timesteps of all runs"
    )
    experiments = [name for name, arm in study.arms.items() if isinstance(arm, ExperimentArm)]
    if experiments:
        yield f"the test is played by the champion of {', '.join(experiments)}"


def _deviations(study: Study, results: list[PairResult]) -> Iterator[str]:
    """Yield deviations from the plan, and differences in how results were made."""
    for each in results:
        most = study.config.budget.timesteps + study.arms[each.arm].rounding_timesteps
        if each.total_timesteps >= most:
            yield (
                f"deviation: all runs of {each.arm}, seed {each.seed} played "
                f"{each.total_timesteps:,} timesteps, more than the budget"
            )
    # game_rl's is left out: every file of its code is that of the registration
    for name in sorted({name for each in results for name in each.versions} - {"game_rl"}):
        found = sorted({each.versions.get(name, "none") for each in results if each.versions})
        if len(found) > 1:
            yield f"deviation: results were made with {name} {' and '.join(found)}"
    hosts = sorted({each.host for each in results if each.host})
    if len(hosts) > 1:
        yield f"results were made on {len(hosts)} machines: {', '.join(hosts)}"


def _unsealed(results: Mapping[str, list[PairResult]]) -> Iterator[str]:
    """Yield a note that names the results in which an edit could not be noticed."""
    names = []
    for arm, found in results.items():
        seeds = [str(each.seed) for each in found if each.sha256 is None]
        if seeds:
            names.append(f"{arm} (seeds {', '.join(seeds)})")
    if names:
        yield (
            f"without a SHA-256 of their own, so that an edit would not be detected: results of "
            f"{', '.join(names)}"
        )


@dataclass(frozen=True)
class PairStatus:
    arm: str
    seed: int
    is_done: bool
    timesteps: int
    text: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def study_status(study: Study) -> list[PairStatus]:
    """Return the progress of all pairs; reading it does not disturb a process at work on the study.

    Raises:
        UsageError: the study is not registered.
        ExperimentError: it is not what was registered.
    """
    registration = registered(study).sha256()
    folder = study_dir(study.config)
    rows = []
    for pair in pairs_of(study):
        found = read_study_result(folder, pair, registration=registration)
        if found is not None:
            timesteps = found.timesteps
            words = result_words(found)
        else:
            timesteps, words = _progress(study, folder, pair)
        rows.append(PairStatus(pair.arm, pair.seed, found is not None, timesteps, words))
    return rows


def study_progress(study: Study) -> MembersProgress:
    """Return how far each pair of arm and seed is."""
    folder = study_dir(study.config)
    shares = dict[str, float]()
    for pair in pairs_of(study):
        has_result = folder.result(pair.arm, pair.seed).exists()
        shares[pair.name] = 1.0 if has_result else _share_of_pair(study, folder, pair)
    done = sum(share == 1 for share in shares.values())
    return MembersProgress(f"{done} of {len(shares)} results", shares)


def _share_of_pair(study: Study, folder: StudyDir, pair: Pair) -> float:
    run_dir = folder.run(pair.arm, pair.seed)
    arm = study.arms[pair.arm]
    if isinstance(arm, ExperimentArm):
        place = ExperimentDir(run_dir.root)
        if not place.exists():
            return 0.0
        status = experiment_status(place)
        before = (status.generation - 1) / status.generations
        shares = [share for _, share in shares_done(status)]
        share = before + sum(shares) / max(1, len(shares)) / status.generations
    else:
        share = read_tail(run_dir).timesteps / max(1, arm.timesteps)
    return min(0.99, share)


def result_words(result: PairResult) -> str:
    if result.played is None:
        return f"failed: {result.failure}"
    fitness = fitness_of(result.played, "mean_reward")
    words = f"mean reward {fitness.mean_reward:.2f}"
    rate = fitness.success_rate
    if rate is None:
        return words
    return f"{words}, success {percent(rate, 1)} ({share_words(rate, fitness.episodes)})"


def _progress(study: Study, folder: StudyDir, pair: Pair) -> tuple[int, str]:
    """Return a pair's timesteps and a text; an experiment counts all its runs."""
    arm = study.arms[pair.arm]
    run_dir = folder.run(pair.arm, pair.seed)
    stage = ""
    if isinstance(arm, ExperimentArm):
        place = ExperimentDir(run_dir.root)
        timesteps = read_totals(place, arm.experiment).timesteps
        if timesteps:
            status = experiment_status(place)
            stage = f"{STAGES[status.kind]} {status.generation} of {status.generations}, "
    else:
        timesteps = max((event.timesteps for event in read_events(run_dir)[-1:]), default=0)
    if not timesteps:
        return 0, "not begun"
    return timesteps, f"{stage}{timesteps:,} of {arm.timesteps:,} timesteps"


def break_lines(
    arms: Mapping[str, Sequence[Sequence[Reached]]], metric: Metric
) -> list[str | Cells]:
    """Return a table of means over seeds, and what it shows; empty if no arm is an experiment.

    Args:
        arms: by arm and seed, the scores of all runs at the end of each generation.
    """
    header = ["arm", "generation", "continued: before, after", "copies: before, after", "learner"]
    rows = [row for name, seeds in arms.items() for row in _rows(name, seeds, metric)]
    if not rows:
        return []
    return [
        "At the breaks: mean scores over seeds and members at the end of the generation before "
        "(for a copy, its parent's) and at the end of this one; in brackets, the number of "
        "members.",
        "",
        Cells(header, rows),
    ]


def _rows(name: str, seeds: Sequence[Sequence[Reached]], metric: Metric) -> Iterator[list[str]]:
    for generation in sorted({each.generation for seed in seeds for each in seed}):
        steps = [step for seed in seeds for step in _steps(seed, generation, metric)]
        yield [
            name,
            f"{generation}",
            _change(((before, after) for kind, before, after in steps if kind == "itself"), metric),
            _change(((before, after) for kind, before, after in steps if kind == "copy"), metric),
            _change(((None, after) for kind, _, after in steps if kind == "learner"), metric),
        ]


def _steps(
    seed: Sequence[Reached], generation: int, metric: Metric
) -> Iterator[tuple[str, float | None, float]]:
    """Yield each run's kind, its score a generation before if it had one, and its score now."""
    before = {r.number: r.value(metric) for r in seed if r.generation == generation - 1}
    for each in seed:
        after = each.value(metric)
        if each.generation != generation or after is None:
            continue
        kind = "itself" if each.began_as in (None, each.number) else "copy"
        began = None if each.began_as is None else before.get(each.began_as)
        yield "learner" if each.is_learner else kind, began, after


def _change(pairs: Iterable[tuple[float | None, float]], metric: Metric) -> str:
    found = list(pairs)
    if not found:
        return ""
    after = score_words(fmean(score for _, score in found), metric)
    began = [score for score, _ in found if score is not None]
    before = f"{score_words(fmean(began), metric)}, " if began else ""
    return f"{before}{after} ({len(found)})"
