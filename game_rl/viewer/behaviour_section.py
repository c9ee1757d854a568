"""What a policy does: its clip, its actions, what it is rewarded for, how its episodes end."""

import base64
from pathlib import Path
from shlex import quote

from game_rl.events import Evaluated
from game_rl.events.run_view import Curve
from game_rl.system.units import MIB, format_bytes
from game_rl.viewer.report_style import Html, bars, element, note, section
from game_rl.viewer.run_panels import REWARD_TERM, terms_by_size
from game_rl.viewer.shown_run import ShownRun

_LARGEST_CLIP_BYTES = 24 * MIB
_MIME = {".gif": "image/gif", ".mp4": "video/mp4"}


def clip_card(folder: Path, run: str) -> Html:
    """Return a card with the best policy's clip or, without one, the newest of a folder.

    Args:
        run: how a command names the run.
    """
    found = [path for path in folder.glob("*.*") if path.suffix in _MIME] if folder.is_dir() else []
    best = sorted(found, key=lambda path: (path.stem != "best", -path.stat().st_mtime))
    if not best:
        how = element("code", "game-rl record ", run)
        return _clip(note("No clip was recorded. ", how, " makes one for the next report."))
    clip = best[0]
    size = best[0].stat().st_size
    if size > _LARGEST_CLIP_BYTES:
        return _clip(note(f"{clip} has {format_bytes(size)}, which is too large for this page."))
    data = f"data:{_MIME[clip.suffix]};base64,{base64.b64encode(clip.read_bytes()).decode()}"
    what = f"The agent at play, from {clip.name}"
    if clip.suffix == ".gif":
        return _clip(element("img", src=data, alt=what))
    video = element("video", src=data, controls=True, muted=True, loop=True, aria_label=what)
    return _clip(video)


def _clip(content: Html) -> Html:
    return element("div", element("h3", "Clip"), content, class_="card")


_ENDING = "game/ending/"
_LAST_SHARE = 0.1  # of the run, over which the newest values of a curve are averaged


def behaviour_section(run: ShownRun) -> Html:
    """Return the section with the clip, the actions, the reward terms and the endings."""
    cards = [*filter(None, [_actions(run), _stacked(_rewards(run), _endings(run))])]
    clip = clip_card(run.run_dir.videos, quote(str(run.run_dir.root)))
    parts = [element("div", clip, *cards, class_="columns")]
    if not cards:
        text = "Nothing is recorded yet: actions come with the first evaluation, rewards with the"
        parts.append(note(f"{text} first episodes."))
    return section("What the policy does", "behaviour", *parts)


def _stacked(*cards: Html | None) -> Html | None:
    there = [card for card in cards if card]
    return element("div", *there) if there else None


def _card(title: str, about: str, rows: list[tuple[str, float, str]]) -> Html:
    return element(
        "div",
        element("h3", title),
        element("p", about, class_="muted"),
        bars(rows),
        class_="card",
    )


def _actions(run: ShownRun) -> Html | None:
    event = _newest_with_actions(run)
    if event is None:
        return None
    counts = event.action_counts
    total = sum(event.action_counts)
    if not total:
        return None
    names = _action_names(run, len(counts))
    largest = max(counts)
    rows = [
        (name, count / largest, f"{100 * count / total:.1f} %")
        for name, count in zip(names, counts, strict=True)
    ]
    acts = "its most probable actions" if event.deterministic else "sampled actions"
    which = "the final evaluation" if event.is_final else "the newest evaluation"
    about = f"{which[0].upper()}{which[1:]}: {total:,} timesteps of the policy of timestep "
    return _card("Actions", f"{about}{event.policy_timesteps:,}, which took {acts}.", rows)


def _newest_with_actions(run: ShownRun) -> Evaluated | None:
    events = [*run.better_evaluations, *([] if run.final is None else [run.final])]
    return next((event for event in reversed(events) if event.action_counts), None)


def _action_names(run: ShownRun, count: int) -> list[str]:
    """Return the names that the game file of the newest checkpoint has; else numbers."""
    actions = {} if run.checkpoint_state is None else run.checkpoint_state.game.get("actions")
    names = list(actions) if isinstance(actions, dict | list) else []
    return [str(name) for name in names] if len(names) == count else [str(n) for n in range(count)]


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
    rows = [(name, share, f"{100 * share:.1f} %") for name, share in shares]
    if rest > 0.0005:
        rows.append(("cut short, or another ending", rest, f"{100 * rest:.1f} %"))
    about = "Share of the episodes that ended so, over the last tenth of the training."
    return _card("Endings of episodes", about, rows)


def _newest(run: ShownRun, curve: Curve) -> float:
    """Return the mean over the last tenth of the run's timesteps, or the last value."""
    is_new = curve.timesteps > (1 - _LAST_SHARE) * run.timesteps
    return float(curve.values[is_new].mean() if is_new.any() else curve.values[-1])
