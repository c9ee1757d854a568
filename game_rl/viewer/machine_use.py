"""Memory and disk that a run uses, against what its preflight has predicted."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from game_rl.files.run_dir import RunDir
from game_rl.files.saved import parse_json
from game_rl.system.units import GIB

Json = dict[str, Any]


def machine_use(run_dir: RunDir, newest: Mapping[str, float]) -> Json:
    """Return bytes of memory and disk: predicted, in use, available.

    It walks through the run directory, which takes a moment if there is a Lake.

    Args:
        newest: newest value of each training curve, by its name.
    """
    plan = _read(run_dir.preflight)
    measured = _read(run_dir.footprint)
    lake, rest = _sizes(run_dir)
    return {
        "ram": {
            "predicted": _at(plan, "ram", "predicted_peak_bytes"),
            "limit": _at(plan, "ram", "limit_bytes"),
            "now": _bytes(newest.get("resources/ram_gib")),
            "free": _bytes(newest.get("resources/ram_free_gib")),
            "peak": _at(measured, "ram_peak_bytes", "measured"),
        },
        "vram": {
            "predicted": _at(plan, "vram", "predicted_peak_bytes"),
            "now": _bytes(newest.get("resources/vram_gib")),
        },
        "disk": {
            "predicted": _at(plan, "disk", "predicted_total_bytes"),
            "now": lake + rest,
            "free": _free(run_dir.root),
        },
        "lake": None if not lake else {"now": lake, "predicted": _lake_plan(plan)},
        "cpu_percent": newest.get("resources/cpu_percent"),
    }


def _read(path: Path) -> Any:  # noqa: ANN401 - JSON
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _at(tree: Any, *keys: str) -> int | None:  # noqa: ANN401 - JSON of another version, perhaps
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return int(tree) if isinstance(tree, int | float) else None


def _bytes(gib: float | None) -> int | None:
    return None if gib is None else round(gib * GIB)


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _sizes(run_dir: RunDir) -> tuple[int, int]:
    """Return the bytes of the run's own Lake, and of all its other files."""
    lake = rest = 0
    for folder, _, names in os.walk(run_dir.root):
        is_lake = Path(folder).is_relative_to(run_dir.lake)
        for name in names:
            try:
                size = Path(folder, name).stat().st_size
            except OSError:  # it has just been renamed
                continue
            if is_lake:
                lake += size
            else:
                rest += size
    return lake, rest


def _lake_plan(plan: Any) -> int | None:  # noqa: ANN401 - JSON
    disk = plan.get("disk") if isinstance(plan, dict) else None
    parts = disk.get("parts") if isinstance(disk, dict) else None
    found = [
        part.get("bytes")
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and str(part.get("name", "")).startswith("Lake")
    ]
    sizes = [size for size in found if isinstance(size, int)]
    return sum(sizes) if sizes and len(sizes) == len(found) else None
