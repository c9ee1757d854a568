"""The report of a population or a mixture: one file for people who have only a browser."""

from collections.abc import Sequence
from shlex import quote
from statistics import fmean

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.events import (
    ChampionFound,
    ExperimentBegun,
    ExperimentEnded,
    ExperimentEvent,
    ExperimentWarned,
    Fitness,
    MemberDied,
    WentBack,
)
from game_rl.events.run_view import STATE_WORDS, PlotAxis
from game_rl.experiments.descent import changes_words
from game_rl.experiments.records import GenerationRecord, Value
from game_rl.system.units import counted
from game_rl.viewer.family_tree import family_tree
from game_rl.viewer.report_clips import ReportClip
from game_rl.viewer.report_sections import (
    clips_section,
    config_section,
    plots_section,
    reproduce_section,
    versions_section,
)
from game_rl.viewer.report_style import (
    Html,
    element,
    folded,
    note,
    pair,
    report,
    section,
    table,
    tile,
)
from game_rl.viewer.run_panels import fitness_panel, run_panels
from game_rl.viewer.run_story import game_in_words, in_percent, learned_game, percent_interval
from game_rl.viewer.shown_runs import ShownExperiment

_MOST_ROWS = 30
_METRICS = {"success_rate": "success", "mean_reward": "mean reward"}


def experiment_report(
    shown: ShownExperiment, axis: PlotAxis = "timesteps", clips: Sequence[ReportClip] = ()
) -> str:
    """Return an experiment's report as HTML, with everything in it.

    Args:
        clips: of the champion; without one, that in the champion's folder is shown.
    """
    config = shown.experiment.config
    run = shown.experiment.run
    about = f"{config.kind} of {config.members} {run.algorithm.name.upper()} members on {run.game}"
    panels = [*filter(None, [fitness_panel(shown, axis)]), *run_panels(shown.groups, axis)]
    settings = config_section(
        "Keys of the members that differ from their defaults:",
        run,
        dump_experiment(shown.experiment),
    )
    return report(
        shown.name,
        f"{about[0].upper()}{about[1:]}, seed {config.seed}",
        _state(shown),
        *(element("p", text, class_="story") for text in _story(shown)),
        _tiles(shown),
        clips_section(clips, shown.folder.champion / "videos", quote(str(shown.folder.root))),
        _champion_section(shown),
        _lineage_section(shown),
        plots_section(panels),
        _generations_section(shown),
        _members_section(shown),
        pair([settings], [_events_section(shown), _reproduce_section(shown)]),
        *(versions_section(each) for each in shown.members[:1]),
    )


def _story(shown: ShownExperiment) -> list[str]:
    """Return what the game is, and how the experiment went and ended."""
    config = shown.experiment.config
    records = shown.records
    state = next((each.checkpoint_state for each in shown.members), None)
    definition = learned_game(state)
    paragraphs = []
    if definition is not None:
        paragraphs.append(game_in_words(definition, shown.experiment.run.env))
    sentences = [
        f"{config.members} members train side by side, {config.timesteps_per_generation:,} "
        f"timesteps in each {shown.stage}, after which each plays "
        f"{counted(config.fitness.episodes, 'episode')} for its fitness.",
    ]
    best = [(record, fitness) for record in records if (fitness := _best(record)) is not None]
    if best:
        first, fitness = best[0]
        sentences.append(
            f"After {shown.stage} {first.generation}, the best member had {_result(fitness)}"
            + (f"; after {best[-1][0].generation}, {_result(best[-1][1])}." if best[1:] else ".")
        )
    copies = [copy for record in records for copy in record.copies]
    if copies:
        were = "was" if len(copies) == 1 else "were"
        sentences.append(f"{counted(len(copies), 'member')} {were} replaced by copies of others.")
    if shown.champion is not None:
        final = shown.champion.final
        sentences.append(
            f"The champion is {shown.champion.folder}{_descent_words(shown)}: in "
            f"{counted(final.episodes, 'held-out episode')} it had {_result(final)}."
        )
    ended = shown.events[-1] if shown.events else None
    if isinstance(ended, ExperimentEnded) and ended.text:
        sentences.append(f"It ended ({STATE_WORDS[ended.reason]}): {ended.text}.")
    elif records and len(records) < config.generations:
        sentences.append(f"{len(records)} of {config.generations} {shown.stage}s are complete.")
    return [*paragraphs, " ".join(sentences)]


def _result(fitness: Fitness) -> str:
    reward = f"a mean reward of {fitness.mean_reward:.2f}"
    success, interval, _ = _cells(fitness)
    return f"{success} success (95 % interval {interval} %) and {reward}" if success else reward


def _descent_words(shown: ShownExperiment) -> str:
    """Return from which runs the champion descends, the newest first; empty if from none."""
    names = list(dict.fromkeys(member.folder for _, member in reversed(shown.lineage)))
    return f", which descends from {', '.join(names[1:])}" if len(names) > 1 else ""


def _state(shown: ShownExperiment) -> tuple[str, str]:
    is_training = shown.folder.is_locked
    if is_training:
        return "training", ""
    last = shown.events[-1] if shown.events else None
    if shown.champion is not None:
        return "complete", "good"
    if isinstance(last, ExperimentEnded):
        return STATE_WORDS[last.reason], "bad" if last.reason == "failed" else ""
    if is_training is None:
        return "state unknown", ""
    return ("not begun", "") if last is None else ("killed", "bad")


def _tiles(shown: ShownExperiment) -> Html:
    config = shown.experiment.config
    records = shown.records
    done = f"{len(records)} of {config.generations}"
    found = [tile(f"{shown.stage}s", done, f"{config.timesteps_per_generation:,} timesteps each")]
    if shown.champion is not None:
        value, about = _score(shown, shown.champion.final)
        what = _METRICS[config.fitness.metric]
        found.insert(0, tile(f"champion, {what}", value, f"{about}; held-out episodes"))
    elif records and (best := _best(records[-1])) is not None:
        value, about = _score(shown, best)
        found.insert(0, tile("best member", value, about))
    total = next((r.timesteps_of_all for r in reversed(records) if r.timesteps_of_all), None)
    if total is not None:
        found.append(tile("timesteps of all", f"{total:,}", "all runs of the experiment"))
    copies = sum(len(record.copies) for record in records)
    found.append(tile("copies", f"{copies}", "of better members over others"))
    return element("div", *found, class_="tiles")


def _score(shown: ShownExperiment, fitness: Fitness) -> tuple[str, str]:
    """Return what the experiment compares, and its interval with the number of episodes."""
    played = counted(fitness.episodes, "episode")
    metric = shown.experiment.config.fitness.metric
    if metric == "mean_reward" or fitness.success_rate is None or fitness.success_interval is None:
        return f"{fitness.mean_reward:.2f}", f"± {fitness.std_reward:.2f} over {played}"
    ends = percent_interval(fitness.success_interval)
    return in_percent(fitness.success_rate), f"95 %: {ends}; {played}"


def _best(record: GenerationRecord) -> Fitness | None:
    by_number = {member.number: member.fitness for member in record.members}
    return by_number.get(record.ranking[0]) if record.ranking else None


def _cells(fitness: Fitness | None) -> tuple[str, str, str]:
    """Return success, its interval and the mean reward."""
    if fitness is None:
        return "not finite", "", ""
    reward = f"{fitness.mean_reward:.2f}"
    if fitness.success_rate is None or fitness.success_interval is None:
        return "", "", reward
    return in_percent(fitness.success_rate), percent_interval(fitness.success_interval), reward


_FITNESS = ("success", "95 %", "mean reward")


def _champion_section(shown: ShownExperiment) -> Html:
    champion = shown.champion
    if champion is None:
        last = shown.experiment.config.generations
        text = f"There is none yet: it is chosen after {shown.stage} {last}."
        return section("Champion", "champion", note(text))
    judged = [
        *(("selected it", each.folder, each.selection) for each in champion.candidates),
        *(("chose among candidates", each.folder, each.validation) for each in champion.candidates),
        ("were held out", champion.folder, champion.final),
    ]
    rows = [
        (words, folder, f"{fitness.episodes}", *_cells(fitness))
        for words, folder, fitness in judged
    ]
    head = ("episodes that", "member", "number", *_FITNESS)
    why = "Only the held-out episodes give its score; the others were used to choose it."
    about = element("p", why, class_="muted")
    return section("Champion", "champion", table(head, rows, numbers=(2, 3, 4, 5)), about)


def _generations_section(shown: ShownExperiment) -> Html:
    title = f"{shown.stage[0].upper()}{shown.stage[1:]}s"
    if not shown.records:
        text = f"No {shown.stage} is complete yet."
        return section(title, "generations", note(text))
    head = (shown.stage, "timesteps", "best member", *_FITNESS, "mean fitness", "copies")
    rows = []
    for record in shown.records:
        values = [member.fitness.value for member in record.members if member.fitness is not None]
        names = {member.number: member.folder for member in record.members}
        rows.append(
            (
                f"{record.generation}",
                f"{record.timesteps:,}",
                names.get(record.ranking[0], ""),
                *_cells(_best(record)),
                f"{fmean(values):.3g}" if values else "",
                f"{len(record.copies)}",
            )
        )
    numbers = (0, 1, 3, 4, 5, 6, 7)
    parts = [table(head, rows[-_MOST_ROWS:], numbers=numbers)]
    if len(rows) > _MOST_ROWS:
        every = table(head, rows, numbers=numbers)
        parts.append(folded(f"All {len(rows)} {shown.stage}s", every, has_extract=True))
    return section(title, "generations", *parts)


def _lineage_section(shown: ShownExperiment) -> Html:
    lineage = shown.lineage
    if not lineage:
        return Html("")
    ancestors = {(record.generation, member.folder) for record, member in lineage}
    copies = {copy.folder: copy for record in shown.records for copy in record.copies}
    rows = []
    before = ""
    for record, member in lineage:
        copied = copies.get(member.folder) if member.folder != before else None
        began = "" if copied is None else f"copy of {copied.parent_folder}"
        changes = "" if copied is None else changes_words(copied)
        rows.append(
            (f"{record.generation}", member.folder, began, changes, *_cells(member.fitness))
        )
        before = member.folder
    whose = "the champion" if shown.champion is not None else "the best member"
    head = (shown.stage, "run", "started as", "changes", *_FITNESS)
    about = (
        f"Each dot is a member after a {shown.stage}. A line leads to it from its parent: itself, "
        f"or the member that it became a copy of. Those of {whose} are highlighted."
    )
    return section(
        "Who descends from whom",
        "lineage",
        element("p", about, class_="muted"),
        family_tree(shown.records, ancestors, shown.stage),
        element("h3", f"Where {whose} comes from"),
        table(head, rows, numbers=(0, 4, 5, 6), texts=(3,)),
    )


def _members_section(shown: ShownExperiment) -> Html:
    runs = [*shown.members, *([] if shown.learner is None else [shown.learner])]
    if not runs:
        return section("Members", "members", note("No member has started."))
    last = {m.folder: m for record in shown.records[-1:] for m in record.members}
    rows = []
    for run in runs:
        member = last.get(run.run_dir.root.name)
        values = {} if member is None else member.values
        words = ", ".join(f"{key} {_value_words(value)}" for key, value in values.items())
        cells = ("", "", "") if member is None else _cells(member.fitness)
        name = f"{run.name} (learner)" if run is shown.learner else run.name
        rows.append((name, f"{run.timesteps:,}", *cells, words))
    head = ("run", "timesteps", *_FITNESS, "values that change")
    example = f"game-rl report {quote(str(runs[0].run_dir.root))} --output member.html"
    more = element("p", "Each has a report of its own: ", element("code", example), class_="muted")
    return section("Members", "members", table(head, rows, numbers=(1, 2, 3, 4), texts=(5,)), more)


def _value_words(value: Value) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {each:.3g}' for key, each in value.items())}}}"
    return f"{value:.3g}"


def _events_section(shown: ShownExperiment) -> Html:
    rows = [
        (f"{event.time:%Y-%m-%d %H:%M:%S}", f"{event.generation or ''}", words)
        for event in shown.events
        if (words := _words(event))
    ]
    if not rows:
        return section("What happened", "events", note("There is no events.jsonl yet."))
    head = ("time (UTC)", f"after {shown.stage}", "event")
    return section("What happened", "events", table(head, rows, numbers=(1,), texts=(2,)))


def _words(event: ExperimentEvent) -> str:
    match event:
        case ExperimentBegun():
            return f"started or resumed; {event.slots} members train at once"
        case WentBack():
            return f"went back; later records are in {event.set_aside}"
        case MemberDied():
            text = f"member {event.name} died with exit code {event.code}; {event.text}"
            return text.rstrip("; ")
        case ExperimentWarned():
            return event.text
        case ChampionFound():
            return f"champion found: {event.folder}"
        case ExperimentEnded():
            return f"ended ({event.reason}){f': {event.text}' if event.text else ''}"
    return ""


def _reproduce_section(shown: ShownExperiment) -> Html:
    root = quote(str(shown.folder.root))
    commands = [f"game-rl lineage {root}"]
    if shown.champion is not None:
        commands.append(f"game-rl evaluate {root} --episodes {shown.champion.final.episodes}")
    return reproduce_section("experiment", commands)
