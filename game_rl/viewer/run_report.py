"""The report of a run: one file for people who have nothing but a browser."""

from collections.abc import Sequence
from shlex import quote

from game_rl.config.loader import dump_config
from game_rl.events.run_view import STATE_WORDS, Curve, PlotAxis, success_interval
from game_rl.statistics import percentage
from game_rl.system.units import counted, format_bytes, format_duration
from game_rl.viewer.report_clips import ReportClip
from game_rl.viewer.report_sections import (
    MEASURED,
    all_curves_section,
    clips_section,
    config_section,
    evaluations_section,
    events_section,
    footprint_section,
    hints_section,
    milestones_section,
    places_section,
    plots_section,
    pool_section,
    reproduce_section,
    start_states_section,
    versions_section,
)
from game_rl.viewer.report_style import Html, bars, element, note, pair, report, section, tile
from game_rl.viewer.run_panels import REWARD_TERM, run_panels, terms_by_size
from game_rl.viewer.run_story import in_percent, learned_game, percent_interval, run_story
from game_rl.viewer.shown_runs import ShownRun, grouped_runs

_S_IN_HOUR = 3600
_ENDING = "game/ending/"
_LAST_SHARE = 0.1  # of the run, over which the newest values of a curve are averaged
_KINDS = {"completed": "good", "failed": "bad", "killed": "bad"}


def run_report(
    run: ShownRun, axis: PlotAxis = "timesteps", clips: Sequence[ReportClip] = ()
) -> str:
    """Return a run's report as HTML, with everything in it.

    What the run does not have yet is said in its place.

    Args:
        clips: episodes to show; without one, that of the best policy in the run's folder.
    """
    config = run.config
    links = (
        ("clips", "At play"),
        ("behaviour", "What the policy does"),
        ("curves", "Curves"),
        ("evaluations", "Evaluations"),
        ("config", "Config"),
        ("footprint", "Footprint"),
        ("events", "What happened"),
        ("reproduce", "Reproduce"),
    )
    settings = config_section("Keys that differ from their defaults:", config, dump_config(config))
    story = run_story(run, config, learned_game(run.checkpoint_state))
    return report(
        run.name,
        f"{config.algorithm.name.upper()} on {config.game}, seed {config.seed}",
        state_of(run),
        *(element("p", text, class_="story") for text in story),
        _tiles(run),
        element("nav", *(element("a", text, href=f"#{name}") for name, text in links)),
        clips_section(clips, run.run_dir.videos, quote(str(run.run_dir.root))),
        *places_section(run),
        pair(milestones_section(run), hints_section(run)),
        _behaviour_section(run),
        plots_section(run_panels(grouped_runs([run]), axis), has_curves=bool(run.curves)),
        evaluations_section(run),
        *start_states_section(run),
        *pool_section(run),
        pair([settings], [footprint_section(run), events_section(run)]),
        all_curves_section(run),
        pair([_reproduce_section(run)], [versions_section(run)]),
    )


def state_of(run: ShownRun) -> tuple[str, str]:
    """Return the state of the run in words, and whether that is good, bad or neither."""
    return STATE_WORDS[run.state], _KINDS.get(run.state, "")


def _tiles(run: ShownRun) -> Html:
    total = run.config.total_timesteps
    frames = f"{run.clock.at(run.timesteps, 'frames'):,.0f} emulator frames"
    of_total = "" if run.timesteps >= total else f" of {total:,}"
    found = [
        *_score_tiles(run),
        *_pool_tiles(run),
        tile("timesteps", f"{run.timesteps:,}", f"{of_total} {frames}".strip()),
    ]
    if seconds := float(run.clock.hours[-1]) * _S_IN_HOUR:
        speed = f"{run.timesteps / seconds:,.0f} timesteps/s, evaluations included"
        found.append(tile("time", format_duration(seconds), speed))
    else:
        found.append(tile("time", "none yet"))
    for key, label in MEASURED.items():
        of = run.footprint.get(key)
        if of is not None and of.predicted is not None and of.measured is not None:
            words = f"{format_bytes(of.predicted)} predicted"
            found.append(tile(label, format_bytes(of.measured), words))
    return element("div", *found, class_="tiles")


def _score_tiles(run: ShownRun) -> list[Html]:
    events = [event for event in run.better_evaluations if event.is_best]
    event = run.final or (events[-1] if events else None)
    if event is None:
        return [tile("evaluation", "none yet")]
    which = "final" if event.is_final else "best so far"
    played = counted(event.episodes, "episode")
    tiles = []
    ends = success_interval(event)
    if event.success_rate is not None and ends is not None:
        note = f"95 %: {percent_interval(ends)}; {played}"
        tiles.append(tile(f"success, {which}", in_percent(event.success_rate), note))
    note = f"± {event.std_reward:.2f} over {played}"
    return [*tiles, tile(f"mean reward, {which}", f"{event.mean_reward:.2f}", note)]


def _pool_tiles(run: ShownRun) -> list[Html]:
    pool = run.pool
    if pool is None:
        return []
    rate = "none yet" if pool.success_rate is None else in_percent(pool.success_rate)
    return [tile("goal met from the pool", rate, f"{pool.states:,} states")]


def _reproduce_section(run: ShownRun) -> Html:
    config = run.config
    root = quote(str(run.run_dir.root))
    episodes = config.evaluation.final_episodes if run.final is None else run.final.episodes
    notes = [
        "With the same config, seed, versions, ROM and kind of processor, training on the CPU "
        "gives the same weights, bit for bit."
    ]
    if config.fork is not None:
        notes.append(f"The run is a fork: it needs the run {config.fork.run} as well.")
    if config.custom_parts:
        names = ", ".join(part.reference for part in config.custom_parts)
        notes.append(f"It uses code of your own, which must be in the current folder: {names}.")
    if "/" in config.game:
        notes.append(f"The game's file is {config.game}.")
    commands = [
        f"game-rl evaluate {root} --episodes {episodes}",
        f"game-rl record {root} --output clip.gif",
        f"game-rl plot {root} --output curves.png",
    ]
    return reproduce_section("run", commands, *notes)


# ---------------------------------------------------------------------- behaviour


def _behaviour_section(run: ShownRun) -> Html:
    """Return the section with the actions, the reward terms and the endings."""
    cards = [*filter(None, [_actions(run), _rewards(run), _endings(run)])]
    shown = element("div", *cards, class_="columns")
    if not cards:
        text = "Nothing is recorded yet: actions come with the first evaluation, rewards with the"
        shown = note(f"{text} first episodes.")
    return section("What the policy does", "behaviour", shown)


def _card(title: str, about: str, rows: list[tuple[str, float, str]]) -> Html:
    return element(
        "div", element("h3", title), element("p", about, class_="muted"), bars(rows), class_="card"
    )


def _actions(run: ShownRun) -> Html | None:
    event = next((event for event in reversed(run.shown_evaluations) if event.action_counts), None)
    if event is None or not any(event.action_counts):
        return None
    counts = event.action_counts
    total = sum(counts)
    # the game file of the newest checkpoint has their names
    actions = {} if run.checkpoint_state is None else run.checkpoint_state.game.get("actions")
    names = [str(name) for name in actions] if isinstance(actions, dict | list) else []
    if len(names) != len(counts):
        names = [str(n) for n in range(len(counts))]
    largest = max(counts)
    rows = [
        (name, count / largest, f"{percentage(count / total, 1)} %")
        for name, count in zip(names, counts, strict=True)
    ]
    acts = "its most probable actions" if event.deterministic else "sampled actions"
    which = "the final evaluation" if event.is_final else "the newest evaluation"
    about = f"{which[0].upper()}{which[1:]}: {total:,} timesteps of the policy of timestep "
    return _card("Actions", f"{about}{event.policy_timesteps:,}, which took {acts}.", rows)


def _rewards(run: ShownRun) -> Html | None:
    terms = [
        (term, _newest(run, run.curves[f"{REWARD_TERM}{term}"])) for term in terms_by_size([run])
    ]
    largest = max((abs(value) for _, value in terms), default=0.0)
    if not terms:
        return None
    rows = [(term, value / largest if largest else 0.0, f"{value:+.3g}") for term, value in terms]
    about = "Sum of each term over an episode, on average over the last tenth of the training."
    return _card("Reward terms", about, rows)


def _endings(run: ShownRun) -> Html | None:
    found = {
        n.removeprefix(_ENDING): _newest(run, c)
        for n, c in run.curves.items()
        if n.startswith(_ENDING)
    }
    if not found:
        return None
    rest = 1 - sum(found.values())
    shares = sorted(found.items(), key=lambda pair: -pair[1])
    rows = [(name, share, f"{percentage(share, 1)} %") for name, share in shares]
    if rest > 0.0005:
        rows.append(("cut short, or another ending", rest, f"{percentage(rest, 1)} %"))
    about = "Share of the episodes that ended this way, over the last tenth of the training."
    return _card("Endings of episodes", about, rows)


def _newest(run: ShownRun, curve: Curve) -> float:
    """Return the mean over the last tenth of the run's timesteps, or the last value."""
    is_new = curve.timesteps > (1 - _LAST_SHARE) * run.timesteps
    return float(curve.values[is_new].mean() if is_new.any() else curve.values[-1])
