"""Agents that travel: those that come with game_rl, their addresses, and what a packed one lacks.

An agent that comes with game_rl is the folder of a run with one checkpoint, as `game-rl pull`
leaves it, and nothing writes to it. Commands and configs name it `pretrained:duel` in the place of
a run directory.
"""

import re
from pathlib import Path
from shlex import quote

PRETRAINED = "pretrained:"
PACKAGE_FILE = "agent.json"
"""The manifest in the folder of an agent that was packed, to travel to the Hub or with game_rl."""
RECORDED_FOLDER = "recorded"
"""Folder of the recorded episodes that a packed agent brings, from which others can learn."""

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


def run_name(root: Path) -> str:
    """Return how a person names a run: by its folder, or the address of an agent."""
    return pretrained_address(root) or str(root)


def stays_as_it_is(agent: str) -> str:
    """Return why nothing is written to the agent of this address, and what to do instead."""
    return (
        f"{agent} comes with game_rl and stays as it is; start a run of your own from it, "
        f"game-rl train --fork {agent} run_dir=runs/mine, or choose another place"
    )


def is_packed_agent(root: Path) -> bool:
    """Whether a folder has an agent that was packed: a policy, without what it was trained on."""
    return (root / PACKAGE_FILE).is_file()


def brought_episodes(root: Path) -> list[Path]:
    """Return the files of the recorded episodes that a packed agent brings; none if it has none."""
    return sorted((root / RECORDED_FOLDER).glob("*.json"))


def why_no_run(text: str) -> str | None:
    """Return why an address names no run on this machine, and what to do; None for a path."""
    if re.match(r"(s3|gs|az|file):/", text):
        slashes = "///" if text.startswith("file:") else "//"  # a Path has but one
        url = quote(re.sub("/+", slashes, text, count=1))
        return (
            f"{text} is an address in storage, not a run directory; fetch the run first: game-rl "
            f"remote fetch {url} runs/my_run"
        )
    if text.startswith("hf:"):
        return (
            f"{text} is an address on the Hugging Face Hub, not a run directory; fetch the agent "
            f"first: game-rl pull {quote(text)}"
        )
    if text.startswith(PRETRAINED):
        known = ", ".join(f"{PRETRAINED}{name}" for name in pretrained_agents())
        return f"{text} is not an agent that comes with game_rl; there are {known}"
    return None
