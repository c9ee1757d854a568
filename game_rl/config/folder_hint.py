"""The run or experiment that a mistyped folder probably means."""

from pathlib import Path

from game_rl.config.schema_guide import closest


def meant_folder(root: Path) -> str:
    """Return a question for the run or experiment next to `root` whose name is like its name.

    It is empty if there is none. `game-rl runs` lists all.
    """
    try:
        beside = [path.name for path in root.parent.iterdir() if any(path.glob("*.yaml"))]
    except OSError:
        return ""
    meant = closest(root.name, beside)
    return "" if meant is None else f"did you mean {root.parent / meant}?"
