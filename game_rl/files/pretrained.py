"""The trained agents that come with game_rl: where they are, and their addresses.

Each is the folder of a run with one checkpoint, as `game-rl pull` leaves it, and nothing writes to
it. Commands and configs name it `pretrained:duel` in the place of a run directory.
"""

from pathlib import Path

PRETRAINED = "pretrained:"
_PACKAGE = Path(__file__).parents[1]


def pretrained_folder() -> Path:
    """Return the folder: in the package where it was built, next to it in a checkout."""
    built = _PACKAGE / "pretrained"
    return built if built.is_dir() else _PACKAGE.parent / "pretrained"


def pretrained_agents() -> dict[str, Path]:
    """Return the folder of each agent by its name, in the order of names."""
    return {file.parent.name: file.parent for file in sorted(_configs())}


def _configs() -> list[Path]:
    return list(pretrained_folder().glob("*/config.yaml"))


def pretrained_path(text: str) -> Path | None:
    """Return the folder that `pretrained:NAME` means; None if it is no such address or agent."""
    if not text.startswith(PRETRAINED):
        return None
    return pretrained_agents().get(text.removeprefix(PRETRAINED))


def pretrained_address(root: Path) -> str | None:
    """Return the address of the agent in this folder; None if it is another folder."""
    if root.parent.absolute() != pretrained_folder().absolute():
        return None
    return f"{PRETRAINED}{root.name}"
