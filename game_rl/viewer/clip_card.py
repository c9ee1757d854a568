"""The clip of an agent at play, inside a page."""

import base64
from pathlib import Path

from game_rl.system.units import MIB, format_bytes
from game_rl.viewer.html_text import Html, element
from game_rl.viewer.report_style import note

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
        return _card(note("No clip was recorded. ", how, " makes one for the next report."))
    clip = best[0]
    size = best[0].stat().st_size
    if size > _LARGEST_CLIP_BYTES:
        return _card(note(f"{clip} has {format_bytes(size)}, which is too large for this page."))
    data = f"data:{_MIME[clip.suffix]};base64,{base64.b64encode(clip.read_bytes()).decode()}"
    what = f"The agent at play, from {clip.name}"
    if clip.suffix == ".gif":
        return _card(element("img", src=data, alt=what))
    video = element("video", src=data, controls=True, muted=True, loop=True, aria_label=what)
    return _card(video)


def _card(content: Html) -> Html:
    return element("div", element("h3", "Clip"), content, class_="card")
