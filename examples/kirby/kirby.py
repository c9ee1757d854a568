"""The rewards of PyBoy-RL in Kirby's Dream Land: the first of a list that applies."""

from collections.abc import Mapping
from typing import Any

WARP_STAR = 6
LEFTMOST, RIGHTMOST = 68, 76  # where Kirby stands on the screen while the level scrolls
FRAMES = 4  # theirs is earned at each of the frames of a timestep while Kirby goes on alike


class Ladder:
    def reset(self, variables: Mapping[str, Any]) -> None:
        self.before = dict(variables)
        self.progress = _progress(variables)

    def step(self, variables: Mapping[str, Any]) -> dict[str, float]:
        before, progress = self.before, self.progress
        self.reset(variables)
        event = _event(before, variables)
        if event is not None:
            return {"event": event}
        if variables["boss_health"] > 0 or variables["game_state"] == WARP_STAR:
            return {"score": 100 if variables["score"] > before["score"] else 0}
        moved = _movement(before["kirby_x"], variables["kirby_x"], progress, self.progress)
        return {"movement": FRAMES * moved}


def _event(before: Mapping[str, Any], now: Mapping[str, Any]) -> int | None:
    """Return what a single moment earns: the boss, health, and the warp star."""
    if now["boss_health"] < before["boss_health"]:
        return 10_000 if now["boss_health"] == 0 else 1_000
    if now["health"] < before["health"] and now["health"] <= 1:
        return -100 if now["health"] == 1 else -1_000
    reached = now["game_state"] == WARP_STAR and before["game_state"] != WARP_STAR
    return 1_000 if reached and now["health"] > 0 else None


def _movement(x_before: int, x: int, progress_before: int, progress: int) -> int:
    if x < x_before:
        return -1
    if progress == progress_before:
        return -1
    if x == LEFTMOST:
        return -5
    return 5 if x == RIGHTMOST else 1


def _progress(variables: Mapping[str, Any]) -> int:
    found: int = 16 * variables["screen_x"] + (variables["scroll_x"] - 7) % 16
    return found + int(variables["kirby_x"])
