"""The findings of a complete study, judged by the registered rule."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from shlex import quote

from game_rl.config.experiments.study_config import ExperimentArm, PairConfig, Study
from game_rl.errors import ExperimentError
from game_rl.experiments.compare.arms import check_metric
from game_rl.experiments.compare.comparison import Comparison, Rule, compare_arms
from game_rl.experiments.compare.outcome import Arm
from game_rl.experiments.study.breaks import break_lines
from game_rl.experiments.study.pairs import pairs_of
from game_rl.experiments.study.registration import Registration, registered
from game_rl.experiments.study.results import Result, arm_of, read_results
from game_rl.experiments.study.study_dir import study_dir


@dataclass(frozen=True)
class StudyFindings:
    """The comparison of a complete study.

    Attributes:
        notes: the plan in words, and the deviations from it.
        breaks: a Markdown table of the scores across breaks; empty if no arm is an experiment.
    """

    study: Study
    registration: Registration
    comparison: Comparison
    notes: tuple[str, ...]
    breaks: tuple[str, ...]


def study_findings(study: Study) -> StudyFindings:
    """Judge a study that has all its results.

    Raises:
        UsageError: it is not registered.
        ExperimentError: a file, a config, the code or a result is not what was registered, or
            results are missing.
    """
    registration, folder = registered(study), study_dir(study.config)
    results = read_results(study, folder, registration=registration.sha256())
    there = {(each.arm, each.seed) for found in results.values() for each in found}
    missing = [pair.name for pair in pairs_of(study) if (pair.arm, pair.seed) not in there]
    if missing:
        raise ExperimentError(
            f"{len(missing)} of {len(missing) + len(there)} results are missing ({missing[0]}, for "
            "example), and a study is judged only once it is complete; make them with python "
            f"train.py --config {quote(str(study.file))}"
        )
    arms = [arm_of(name, found, folder) for name, found in results.items()]
    check_metric(arms, study.config.metric)
    every = [each for found in results.values() for each in found]
    notes = (*_plan_notes(study, registration), *_deviations(study, every), *_unsealed(results))
    of_arms = {name: [each.reached for each in found] for name, found in results.items()}
    breaks = tuple(break_lines(of_arms, study.config.metric))
    return StudyFindings(study, registration, _judged(study, arms), notes, breaks)


def _judged(study: Study, arms: list[Arm]) -> Comparison:
    """Judge the primary comparison alone, and the others together, with Holm's correction."""
    config = study.config
    rule = Rule(
        metric=config.metric,
        paired=config.paired,
        alpha=config.decision.alpha,
        minimum=config.decision.minimum,
        margin=config.decision.margin,
    )
    found = compare_arms(arms, rule, [_names(config.primary)])
    others = compare_arms(arms, rule, [_names(pair) for pair in config.others])
    return replace(found, differences=(*found.differences, *others.differences))


def _names(pair: PairConfig) -> tuple[str, str]:
    return pair.arm, pair.against


def _plan_notes(study: Study, registration: Registration) -> Iterator[str]:
    config = study.config
    pair, test = config.primary, config.test
    yield f"registered {registration.registered:%Y-%m-%d %H:%M} UTC, {registration.sha256()[:16]}"
    yield f"the question is answered by {pair.arm} against {pair.against}; all else is exploration"
    yield (
        f"score of a seed: {config.metric} over {test.episodes} episodes of seed {test.seed:,}, "
        f"played by the {config.selection} checkpoint; budget {config.budget.timesteps:,} "
        "timesteps of everybody"
    )
    experiments = [name for name, arm in study.arms.items() if isinstance(arm, ExperimentArm)]
    if experiments:
        yield f"the test is played by the champion of {', '.join(experiments)}"


def _deviations(study: Study, results: list[Result]) -> Iterator[str]:
    """Yield deviations from the plan, and differences in how results were made."""
    for each in results:
        most = study.config.budget.timesteps + study.arms[each.arm].rounding_timesteps
        if each.total_timesteps >= most:
            yield (
                f"deviation: everybody of {each.arm}, seed {each.seed} played "
                f"{each.total_timesteps:,} timesteps, more than the budget"
            )
    yield from _version_deviations(results)
    hosts = sorted({each.host for each in results if each.host})
    if len(hosts) > 1:
        yield f"results were made on {len(hosts)} machines: {', '.join(hosts)}"


def _unsealed(results: Mapping[str, list[Result]]) -> Iterator[str]:
    """Yield a note that names the results in which an edit could not be noticed."""
    seeds = {
        arm: ", ".join(str(each.seed) for each in found if each.sha256 is None)
        for arm, found in results.items()
    }
    names = [f"{arm} (seeds {found})" for arm, found in seeds.items() if found]
    if names:
        yield (
            f"without a SHA-256 of their own, so that an edit would not be noticed: results of "
            f"{', '.join(names)}"
        )


def _version_deviations(results: list[Result]) -> Iterator[str]:
    names = sorted({name for each in results for name in each.versions})
    for name in names:
        found = sorted({each.versions.get(name, "none") for each in results if each.versions})
        if len(found) > 1:
            yield f"deviation: results were made with {name} {' and '.join(found)}"
