"""An agent as it travels: the address of its repository, its files, and what it needs besides.

The repository is a run directory with one checkpoint, and has what users of Stable-Baselines3 look
for beside it. `agent.json` is its manifest:

    README.md  config.json  results.json  replay.mp4  curves.png  ppo-duel.zip  as SB3's users know
    early.mp4  best.mp4  worst.mp4                                              on the card
    recorded/00.json …                                 episodes from which other agents can learn
    config.yaml  run.json  events.jsonl  eval.csv  checkpoints/000000300032/    a run
    game/game.yaml …  code/…py                                                  one's own game, code
    agent.json                                                                names, sizes, hashes

A stranger may have written all of it. Names lead nowhere else, sizes are bounded before anything is
fetched, and every file is compared with its hash.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key
from game_rl.errors import StorageError, UsageError
from game_rl.files.pretrained import PRETRAINED, RECORDED_FOLDER
from game_rl.files.saved import Natural, Saved, Sha256, parse_saved
from game_rl.system.units import format_bytes

CARD = "README.md"
REPLAY = "replay.mp4"
RESULTS = "results.json"
EARLY = "early.mp4"
EPISODE_CLIPS = (EARLY, "best.mp4", "worst.mp4")
"""The first episode that the run has logged, and those with the highest and the lowest reward of
the evaluation on the card."""
GAME_FOLDER = "game"
CODE_FOLDER = "code"

LARGEST_MANIFEST_BYTES = 2**20
LARGEST_AGENT_BYTES = 2**30
_MOST_FILES = 1_000

_SCHEME = "hf:"
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_ADDRESS = re.compile(rf"(?P<user>{_NAME})/(?P<name>{_NAME})(@(?P<revision>[\w./-]{{1,200}}))?")
_TOP_FILES = (
    *("config.json", RESULTS, REPLAY, "curves.png", *EPISODE_CLIPS),
    *("config.yaml", "run.json", "events.jsonl", "eval.csv", "potentials.json"),
)
_RECORDED = re.compile(rf"{RECORDED_FOLDER}/\d{{2}}\.json")
_CHECKPOINT_FILE = re.compile(r"checkpoints/\d{12}/[a-z_]+\.(json|safetensors)")
_ZIP = re.compile(r"[A-Za-z0-9._-]+\.zip")


@dataclass(frozen=True)
class HubAddress:
    """A model repository on the Hub.

    Attributes:
        revision: branch, tag or commit; None: the newest commit of `main`.
    """

    user: str
    name: str
    revision: str | None = None

    @property
    def repo_id(self) -> str:
        return f"{self.user}/{self.name}"

    @property
    def played(self) -> str:
        """The run directory that commands name, after `game-rl pull`."""
        return f"runs/{self.name}"

    def __str__(self) -> str:
        revision = "" if self.revision is None else f"@{self.revision}"
        return f"{_SCHEME}{self.repo_id}{revision}"


@dataclass(frozen=True)
class PretrainedAddress:
    """An agent that comes with game_rl."""

    name: str

    @property
    def played(self) -> str:
        """What commands name in the place of a run directory."""
        return str(self)

    def __str__(self) -> str:
        return f"{PRETRAINED}{self.name}"


AgentAddress = HubAddress | PretrainedAddress


def parse_address(text: str) -> HubAddress:
    """Parse `hf:USER/NAME` or `hf:USER/NAME@REVISION`.

    Raises:
        UsageError: it is no such address.
    """
    found = _ADDRESS.fullmatch(text.removeprefix(_SCHEME))
    if text.startswith(_SCHEME) and found is not None:
        return HubAddress(found["user"], found["name"], found["revision"])
    way_out = "write hf:USER/NAME, such as hf:ada/ppo-duel"
    if found is not None:
        way_out = f"write {_SCHEME}{text}"
    elif re.match("https?://", text):
        way_out = f"{way_out}, which are the last two words of the page's address"
    elif text.startswith(_SCHEME) and "/" not in text:
        way_out = f"{way_out}: the user or organisation is missing"
    raise UsageError(f"{text} is not an address on the Hugging Face Hub; {way_out}")


def _packaged(path: str) -> str:
    parts = path.split("/")
    is_plain = all(part and part[0] != "." and part.isprintable() for part in parts)
    is_plain = is_plain and not set(path) & set('\\:*?"<>|')
    is_known = (
        path in _TOP_FILES
        or _CHECKPOINT_FILE.fullmatch(path) is not None
        or _ZIP.fullmatch(path) is not None
        or _RECORDED.fullmatch(path) is not None
        or (parts[0] == GAME_FOLDER and len(parts) > 1)
        or (parts[0] == CODE_FOLDER and path.endswith(".py"))
    )
    if not is_plain or not is_known:
        raise ValueError("names no file of an agent")
    return path


class PackagedFile(Saved):
    """A file of the agent."""

    path: Annotated[str, AfterValidator(_packaged), Field(max_length=500)]
    bytes: Annotated[int, Field(ge=0, le=LARGEST_AGENT_BYTES)]
    sha256: Sha256

    @property
    def is_code(self) -> bool:
        return PurePosixPath(self.path).suffix == ".py"


class PlayedRom(Saved):
    """The ROM that the agent plays, which is never part of the package."""

    title: Annotated[str, Field(max_length=200)]
    """Title of the game, from game.yaml."""
    header: Annotated[str, Field(max_length=200)]
    """Title in the ROM's header."""
    sha1: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    sha256: Sha256
    is_bundled: bool
    """Whether it comes with game_rl."""


class AgentPackage(Saved):
    """The manifest of an agent: its files, and what else it needs."""

    format: Literal[1] = 1
    agent: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=200)]
    """Name of the agent, such as `ppo-duel`."""
    timesteps: Natural
    """Timesteps that the policy has learned from."""
    packed: datetime
    rom: PlayedRom
    states_left_out: tuple[Annotated[str, Field(max_length=500)], ...] = ()
    """Files of start states in the game's folder that hold the memory of somebody else's ROM."""
    keys_left_out: tuple[Annotated[str, Field(max_length=200)], ...] = ()
    """Keys of the run's config that name folders or services of the one who packed it."""
    early: Annotated[str, Field(max_length=500)] = ""
    """What the card says of `early.mp4`; empty if there is none."""
    repeat: Annotated[str, Field(max_length=500)]
    """Command that repeats the score."""
    versions: dict[str, str]
    processor: Annotated[str, Field(max_length=200)] = ""
    """Processor that played the evaluation, and the instructions that torch uses there."""
    source_sha256: Sha256
    """Digest of game_rl's source."""
    files: Annotated[tuple[PackagedFile, ...], Field(max_length=_MOST_FILES)]

    @model_validator(mode="after")
    def _one_of_each(self) -> "AgentPackage":
        names = [file.path.lower() for file in self.files]  # some disks know no upper case
        if len(set(names)) < len(names):
            raise ValueError("a file is named twice")
        if (total := sum(file.bytes for file in self.files)) > LARGEST_AGENT_BYTES:
            most = format_bytes(LARGEST_AGENT_BYTES)
            raise ValueError(f"the agent has {format_bytes(total)}, more than the limit of {most}")
        return self

    @property
    def nbytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def file(self, path: str) -> PackagedFile | None:
        return next((file for file in self.files if file.path == path), None)


def parse_package(content: bytes, source: str) -> AgentPackage:
    """Parse `agent.json`.

    Raises:
        StorageError: it is no such manifest, or one of another version of game_rl.
    """
    return parse_saved(
        AgentPackage,
        content,
        source,
        error=StorageError,
        fault="does not describe an agent of this version of game_rl",
        way_out="install the newest game_rl, or ask its author to push the agent again",
    )


LEFT_OUT: Mapping[Key, object] = {
    ("fork",): None,
    ("lake",): None,
    ("upload",): None,
    ("logging", "wandb"): None,
    ("callbacks",): (),
    ("env", "pool"): None,
    ("algorithm", "learn_from"): None,
    ("algorithm", "teacher"): None,
}
"""Keys that name folders, services or code with which a run was trained, and what they become."""


def keys_of_its_author(config: RunConfig) -> tuple[Key, ...]:
    """Return the keys of `LEFT_OUT` that a config has. A shared agent has none."""
    found = []
    for key, value in LEFT_OUT.items():
        section: Any = config.model_dump()
        for name in key[:-1]:
            section = section[name]
        if section.get(key[-1], value) != value:
            found.append(key)
    return tuple(found)
