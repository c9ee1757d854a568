"""The origin of a stream: how its timesteps were played, and whether they fit a run.

It keeps a run from learning from another game by mistake. A run that writes a Lake leaves
`origins/STREAM.json` in it.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from game_rl.config.allowed_changes import LAKE
from game_rl.config.learn_from import LearnFromConfig
from game_rl.config.loader import load_config
from game_rl.config.schema import EnvConfig, RunConfig
from game_rl.config.strict_model import value_at
from game_rl.errors import GameRLError, LakeError, NoLakeError
from game_rl.files.durable_files import write_atomic
from game_rl.files.pretrained import is_packed_agent, run_name
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import from_document, to_document
from game_rl.games.definition import Game, load_game
from game_rl.games.parts.part_spec import shows_place
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.view import EvictedError, LakeView, n_seen

_KIND = "origin of a lake's stream, format 1"
_OF_EVERY_VERSION = ("env.frame_skip", "env.frame_stack", "env.observation")
_WITH_OWN_FORM = ("actions", "parts", "place", "step")

# left out where there are none, as in origins of earlier versions
_HELD = "the game's hold_values"
_PARTS = "the game's parts and place"
_STEP = "the game's step"

_BOUND_KEYS = [key for key in LAKE.bound_keys() if not key.startswith("game.")]
_LATER_KEYS = {
    key: value_at({"env": EnvConfig().model_dump(mode="json")}, key)
    for key in reversed(_BOUND_KEYS)  # the order of earlier versions
    if key not in _OF_EVERY_VERSION
}
"""Later keys of the config with the defaults at which they are left out."""

Origin = Mapping[str, JsonValue]
"""The values that must agree. The keys are their names in error messages."""


def origin_of(config: RunConfig, game: Game) -> Origin:
    """Return the origin of the timesteps that a run of `config` plays."""
    definition = game.definition.model_dump(mode="json", by_alias=True)
    actions = [[name, buttons] for name, buttons in definition.pop("actions").items()]
    observation = config.env.observation
    seen = observation.model_dump(mode="json")
    if not observation.parts:  # as in origins of earlier versions
        del seen["screen"], seen["parts"]
    else:
        seen["parts"].sort()
    parts = {name: definition["parts"].get(name) for name in sorted(observation.parts)}
    dumped = config.model_dump(mode="json")
    values = {key: value_at(dumped, key) for key in _BOUND_KEYS}
    values["env.observation"] = seen
    names = [key.removeprefix("game.") for key in LAKE.bound if key.startswith("game.")]
    return {
        "the ROM's sha256": game.rom.sha256,
        **{key: values[key] for key in _OF_EVERY_VERSION},
        "the game's actions": actions,  # their order counts
        **{f"the game's {n}": definition[n] for n in names if n not in _WITH_OWN_FORM},
        **{key: values[key] for key, usual in _LATER_KEYS.items() if values[key] != usual},
        **({_PARTS: [parts, definition["place"]]} if parts else {}),
        **({_STEP: definition["step"]} if "step" in definition else {}),
        **({_HELD: held} if any(held := _held_values(config, game)) else {}),
    }


def _held_values(config: RunConfig, game: Game) -> list[dict[str, JsonValue]]:
    """Return the different `hold_values` of the run's start states, {} for those without."""
    states = game.starts_of(config.env).values()
    held = {repr(sorted(state.hold_values.items())): state.hold_values for state in states}
    return [dict(held[key]) for key in sorted(held)]


def write_origin(lake: Path, stream: str, origin: Origin) -> None:
    """Write the stream's origin into the Lake; raises OSError if the disk fails."""
    folder = lake / "origins"
    folder.mkdir(exist_ok=True)
    write_atomic(folder / f"{stream}.json", to_document(_KIND, {"origin": dict(origin)}))


def read_origin(lake: Path, stream: str) -> Origin | None:
    """Return the origin that the stream's run wrote, or None if it is not known.

    Earlier versions wrote none. If the Lake is in the run directory of the stream's run, the origin
    follows from that run's config.

    Raises:
        LakeError: the file is damaged.
    """
    file = lake / "origins" / f"{stream}.json"
    try:
        text = file.read_text(errors="replace", encoding="utf-8")
    except OSError:
        return _of_the_run_around(lake, stream)
    origin: Origin = from_document(text, _KIND, source=file)["origin"]
    return origin


def take_origins(source: Path, target: Path, streams: Iterable[str]) -> None:
    """Copy the origins of these streams from the Lake at `source` to the one at `target`.

    Raises:
        LakeError: a file is damaged.
        OSError: the disk fails.
    """
    for stream in streams:
        is_there = (target / "origins" / f"{stream}.json").exists()
        if not is_there and (origin := read_origin(source, stream)) is not None:
            write_origin(target, stream, origin)


def _of_the_run_around(lake: Path, stream: str) -> Origin | None:
    run_dir = RunDir(lake.parent)
    if run_dir.lake != lake or not (run_dir.exists() and run_dir.identity_file.exists()):
        return None
    with suppress(GameRLError, OSError):
        if run_dir.identity().id == stream:
            config = load_config(run_dir.config, is_saved=True)
            return origin_of(config, load_game(config.game))
    return None


def disagreement(ours: Origin, theirs: Origin) -> str | None:
    """Return the first difference with both values, or None if the two agree."""
    empty: Origin = {**_LATER_KEYS, _HELD: [{}], _STEP: None}
    ours = {**empty, **ours}
    theirs = {**empty, **theirs}
    for name, value in ours.items():
        if name in theirs and _compared(name, theirs[name]) != _compared(name, value):
            return f"{name}: {_short(theirs[name])} there, {_short(value)} in this run"
    return None


def _compared(name: str, value: JsonValue) -> JsonValue:
    """Return what counts of a value: the place does only if a part shows what was visited."""
    if name != _PARTS or not isinstance(value, list) or not isinstance(value[0], dict):
        return value
    parts = value[0]
    return value if shows_place(parts, parts) else parts


def _short(value: JsonValue) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


@dataclass(frozen=True)
class LakeRows:
    """The size of some Lakes.

    Attributes:
        transitions: number of transitions in all streams.
        blocks: number of compressed blocks, each of which has a record in a view's table.
    """

    transitions: int = 0
    blocks: int = 0


def check_agreement(
    settings: LearnFromConfig,
    schema: LakeSchema,
    config: RunConfig,
    game: Game,
    tell: Callable[[str], None] = lambda _: None,
) -> LakeRows:
    """Check the Lakes of `settings` and return how much there is to learn from.

    Args:
        tell: is called with a sentence for each stream whose origin is not known.

    Raises:
        LakeError: a Lake is missing or empty, its rows differ from `schema`, or it is of another
            game.
    """
    ours = origin_of(config, game)
    transitions = 0
    blocks = 0
    for path in settings.lakes:
        view, rows = _matching(path, schema, may_be_empty=settings.follow_every_s is not None)
        transitions = transitions + rows.transitions
        blocks = blocks + rows.blocks
        for stream in view.streams:
            if not settings.draws_from(stream):
                continue
            theirs = read_origin(path, stream)
            if theirs is None:
                tell(
                    f"{path} has no record of how the stream {stream} was played; it is assumed "
                    "to have this run's game, actions, rewards and frame_skip"
                )
            elif what := disagreement(ours, theirs):
                raise LakeError(
                    f"{path}, stream {stream}: {what}; use the settings of the stream's run, or "
                    "leave the stream out by giving the others shares in "
                    "algorithm.learn_from.agents"
                )
    return LakeRows(transitions, blocks)


def _matching(path: Path, schema: LakeSchema, *, may_be_empty: bool) -> tuple[LakeView, LakeRows]:
    """Return the Lake's view and size if its rows have this run's schema."""
    if is_packed_agent(path):
        raise NoLakeError(
            f"{run_name(path)} is an agent without the timesteps of its training, so it has no "
            "Lake to learn from; take it out of algorithm.learn_from.lakes, and name it in "
            "algorithm.teacher.run if it is one of dqn or pqn, or in fork.run"
        )
    lake = Lake.open(path, keeps_indices=False)
    if difference := lake.schema.difference(schema):
        raise LakeError(
            f"{path}: {difference}; this run cannot learn from such rows: give it the "
            "env.observation and env.frame_stack of the Lake, or take the Lake out of "
            "algorithm.learn_from.lakes"
        )
    view, rows = _seen(lake)
    if not rows.transitions and not may_be_empty:
        raise LakeError(
            f"{path} has no sealed transitions; let the run that writes it save a checkpoint "
            "first, or take it out of algorithm.learn_from.lakes"
        )
    return view, rows


def _seen(lake: Lake) -> tuple[LakeView, LakeRows]:
    """Return the Lake's view and size; one segment at a time is in memory."""
    while True:
        view = lake.view()
        with suppress(EvictedError):  # its writer evicted a segment: look again
            counts = [(int(n_seen(part).sum()), len(part)) for part in view.parts()]
            return view, LakeRows(sum(n for n, _ in counts), sum(n for _, n in counts))
