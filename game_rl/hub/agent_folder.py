"""A run's policy packed into a folder: what a person who receives the agent needs, and no more.

The folder is a run directory. It holds neither the ROM nor a state of one that does not come with
game_rl, so its checkpoint has no emulators, and no path or service of the one who packs it.
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import safetensors.numpy
import torch
import yaml

from game_rl.callbacks.evaluation import Evaluation
from game_rl.checkpoints.checkpoint_files import FileName, write_files
from game_rl.checkpoints.checkpoint_state import Best, LogState, StopCounters, TrainingState
from game_rl.checkpoints.evaluation_files import seed_of
from game_rl.checkpoints.run_game import find_game
from game_rl.config.custom_part import CustomPart, part_files
from game_rl.config.loader import dump_config, game_path, load_yaml_model
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.emulator.rom import Rom
from game_rl.episodes.button_log import EpisodeNotes
from game_rl.errors import GameFileError, UsageError
from game_rl.events import (
    BaselinePlayed,
    Begun,
    Cloned,
    ConfirmationPlayed,
    CurvesRecorded,
    Ended,
    EpisodesReplayed,
    Evaluated,
    Event,
    MilestoneReached,
    PoolCounted,
    Resumed,
    RolloutEnded,
    StopConditionMet,
)
from game_rl.events.event_log import read_events
from game_rl.explore.potentials import SavedPotentials
from game_rl.files.durable_files import write_atomic, write_saved
from game_rl.files.pretrained import PACKAGE_FILE, is_packed_agent
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import file_sha256
from game_rl.games.definition import Game, GameDefinition, RomFile, bundled_games, load_game
from game_rl.hub.agent_episodes import record_clips, write_recorded
from game_rl.hub.agent_package import (
    CARD,
    CODE_FOLDER,
    GAME_FOLDER,
    LEFT_OUT,
    REPLAY,
    RESULTS,
    AgentAddress,
    AgentPackage,
    HubAddress,
    PackagedFile,
    PlayedRom,
    keys_of_its_author,
    parse_package,
)
from game_rl.hub.model_card import model_card
from game_rl.interchange.sb3_limits import exchangeable
from game_rl.interchange.sb3_zip import export_policy
from game_rl.playback.recording import record_run
from game_rl.playback.trained_run import TrainedRun, evaluate_run, open_own_run
from game_rl.storage.background import game_files
from game_rl.system.machine import processor_name
from game_rl.system.packages import installed_versions, source_sha256
from game_rl.viewer.panel_figure import panels_png
from game_rl.viewer.run_panels import run_panels
from game_rl.viewer.run_story import run_story
from game_rl.viewer.shown_runs import ShownRun, grouped_runs, read_run

_REPLAY_EPISODES = 2
_REPLAY_S = 60.0
_SHORT_REPLAY_S = 30.0  # of an agent that comes with game_rl, which is small
_PANELS = 2  # success and reward, which come first
_NOT_IN_NAMES = re.compile("[^A-Za-z0-9._-]+")

_SHORT_EVENTS = (
    *(Begun, Resumed, Ended, StopConditionMet, MilestoneReached),
    *(Evaluated, ConfirmationPlayed, BaselinePlayed, EpisodesReplayed, Cloned),
)
_SHARED_EVENTS = (*_SHORT_EVENTS, RolloutEnded, CurvesRecorded, PoolCounted)
"""Events that tell how the training went, without paths of the machine.

An agent that comes with game_rl has the short ones, without the curves of the training.
"""


def pack_agent(
    run: TrainedRun,
    address: AgentAddress,
    folder: Path,
    *,
    episodes: int,
    game: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> AgentPackage:
    """Fill a new folder with the agent, evaluate and record it, and return the manifest.

    What is evaluated and recorded is the packed agent.

    Args:
        episodes: of the evaluation, which are those of `game-rl evaluate`.
        game: the game file with which `run` was opened, if it is another one than its own.
        tell: called with what is done next, in words.

    Raises:
        UsageError: the best policy is a teacher's, the game's files do not lie in one folder, or
            the package is missing that writes MP4.
    """
    if run.is_teacher:
        raise UsageError(
            f"the best policy of {run.run_dir} is that of its teacher; push the teacher's run, or "
            "name a checkpoint of this run with @T"
        )
    tell("packing the run")
    before = _package_of(run.run_dir)
    packed = RunDir(folder)
    game_file = _own_game_file(run, game)
    states = () if game_file is None else _write_game(run.game, game_file, folder)
    definition = run.game.definition
    if game_file is not None:
        definition = definition.model_copy(update={"rom": _rom_by_hash(run.game.rom)})
    config, left_out = _shared_config(run, address, game_file)
    if before is not None:
        left_out = tuple(dict.fromkeys((*before.keys_left_out, *left_out)))
    _write_code(run.config, folder)
    shared = _SHARED_EVENTS if isinstance(address, HubAddress) else _SHORT_EVENTS
    events_bytes = _write_events(run, packed, shared)
    _write_checkpoint(run, packed, config, definition, events_bytes)
    _copy_reports(run, packed)
    write_atomic(packed.config, dump_config(config))
    own_game = None if game_file is None else str(game_file)
    agent = open_own_run(folder, "best", own_game)
    name = agent_name(run)
    zip_name = _write_zip(agent, folder, name, address)
    tell(f"playing {episodes} episodes")
    evaluation = evaluate_run(agent, episodes=episodes, trackers=(EpisodeNotes.of,))
    write_atomic(folder / RESULTS, _json(_results(evaluation)))
    write_recorded(agent, evaluation, folder)
    tell("recording the clips")
    most_s = _REPLAY_S if isinstance(address, HubAddress) else _SHORT_REPLAY_S
    record_run(agent, episodes=_REPLAY_EPISODES, output=folder / REPLAY, max_s=most_s)
    clips = dict(record_clips(run, agent, evaluation, folder, before=before, tell=tell))
    shown = read_run(packed.root)
    has_curves = _draw_curves(shown, name)
    repeat = f"game-rl evaluate {address.played} --episodes {episodes}"
    package = AgentPackage(
        agent=name,
        timesteps=run.state.num_timesteps,
        packed=datetime.now(UTC).replace(microsecond=0),
        rom=_needed_rom(run.game),
        states_left_out=states,
        keys_left_out=left_out,
        early=clips.get("Early", ""),
        repeat=repeat,
        versions=installed_versions(),
        processor=this_processor(),
        source_sha256=source_sha256(),
        files=tuple(_hashed(folder)),
    )
    card = model_card(
        agent,
        address,
        package,
        evaluation,
        zip_name=zip_name,
        story=run_story(shown, agent.config, definition),
        has_curves=has_curves,
        clips=clips,
    )
    write_atomic(folder / CARD, card)
    write_saved(folder / PACKAGE_FILE, package)
    return package


def _package_of(run_dir: RunDir) -> AgentPackage | None:
    """Return the manifest of a run that is an agent which was packed before."""
    if not is_packed_agent(run_dir.root):
        return None
    file = run_dir.root / PACKAGE_FILE
    return parse_package(file.read_bytes(), str(file))


def this_processor() -> str:
    """Return the `processor` of an agent that is packed here."""
    return f"{processor_name()}, {torch.backends.cpu.get_cpu_capability()}"


def agent_name(run: TrainedRun) -> str:
    """Return the agent's name as Stable-Baselines3's users write it: algorithm, dash, game."""
    game = _NOT_IN_NAMES.sub("_", run.game.name).strip("_.") or "game"
    return f"{run.config.algorithm.name}-{game}"


def _own_game_file(run: TrainedRun, game: str | None) -> Path | None:
    """Return the game.yaml of a game that does not come with game_rl."""
    file = game_path(game or find_game(run.run_dir, run.config), relative_to=Path())
    if file is not None and file.is_dir():
        file /= "game.yaml"
    return file


def _is_bundled(rom: Rom) -> bool:
    return any(load_game(name).rom.sha256 == rom.sha256 for name in bundled_games())


def _needed_rom(game: Game) -> PlayedRom:
    return PlayedRom(
        title=game.definition.title,
        header=game.rom.title,
        sha1=game.rom.sha1,
        sha256=game.rom.sha256,
        is_bundled=_is_bundled(game.rom),
    )


# ---------------------------------------------------------------------- the game


def _write_game(game: Game, file: Path, folder: Path) -> tuple[str, ...]:
    """Copy game.yaml and what it names; return the files of states that are left out."""
    definition = load_yaml_model(file, GameDefinition, error=GameFileError)
    found = game_files(str(file))
    _check_inside(definition, file, found.paths)
    left_out = set[str]()
    if not _is_bundled(game.rom):
        left_out = {PurePosixPath(path).as_posix() for _, path in definition.state_files()}
    for path, source in found.paths.items():
        if path == found.game_file or path.removeprefix(f"{GAME_FOLDER}/") in left_out:
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, source.read_bytes())
    copy = folder / GAME_FOLDER / "game.yaml"
    copy.parent.mkdir(exist_ok=True)
    by_hash = f"{{sha256: {game.rom.sha256}, sha1: {game.rom.sha1}}}"
    write_atomic(copy, _with_rom(file.read_text(encoding="utf-8"), by_hash))
    expected = definition.model_copy(update={"rom": _rom_by_hash(game.rom)})
    if load_yaml_model(copy, GameDefinition, error=GameFileError) != expected:
        raise UsageError(f"{file}: write its `rom` as {by_hash}, so that it can be shared")
    return tuple(sorted(left_out))


def _check_inside(definition: GameDefinition, file: Path, found: Mapping[str, Path]) -> None:
    """Raise UsageError if game.yaml names a file that cannot travel with it."""
    named = [path for _, path in definition.state_files()]
    named += filter(None, (definition.symbols, definition.place_offsets))
    named += definition.offset_files_of_parts().values()
    for path in named:
        if f"{GAME_FOLDER}/{path.as_posix()}" not in found:
            raise UsageError(
                f"{file} names {path}, which is not in its folder, so it cannot be shared; copy "
                "it next to the file and correct the path"
            )


def _rom_by_hash(rom: Rom) -> RomFile:
    return RomFile(sha256=rom.sha256, sha1=rom.sha1)


def _with_rom(text: str, rom: str) -> str:
    """Return a game.yaml with another value of `rom`; everything else stays as it is written."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    value = next(value for key, value in root.value if key.value == "rom")
    end = "" if value.flow_style else "\n"
    return text[: value.start_mark.index] + rom + end + text[value.end_mark.index :]


# ---------------------------------------------------------------------- the run


def _shared_config(
    run: TrainedRun, address: AgentAddress, game_file: Path | None
) -> tuple[RunConfig, tuple[str, ...]]:
    """Return the run's config without what is this machine's, and the keys that were left out."""
    config = run.config
    changes: dict[Key, object] = {key: LEFT_OUT[key] for key in keys_of_its_author(config)}
    left_out = tuple(".".join(key) for key in changes)
    changes["run_dir",] = f"runs/{address.name}"
    changes["game",] = run.game.name if game_file is None else f"./{GAME_FOLDER}/game.yaml"
    for part in config.custom_networks:
        changes[part.key] = _shared_part(part).item
    if config.env.wrappers:
        changes["env", "wrappers"] = [
            _shared_part(part).item for part in config.env.custom_wrappers
        ]
    for name, term in config.env.rewards.items():
        changes["env", "rewards", name, "potential"] = _shared_folder(term.potential)
    return with_changed(config, changes), left_out


def _shared_part(part: CustomPart) -> CustomPart:
    """Return a part with the folder in which its module travels, if it is a file."""
    has_file = bool(part_files([part], Path.cwd()))
    return replace(part, written=f"{CODE_FOLDER}/{part.reference}" if has_file else part.reference)


def _shared_folder(explored: Path) -> Path:
    """Return the name of an exploration's folder, of which only what was saved travels."""
    return Path("/", explored.name)  # a config makes paths absolute


def _write_code(config: RunConfig, folder: Path) -> None:
    """Copy the modules of custom networks and wrappers, without which the policy cannot play."""
    parts = (*config.custom_networks, *config.env.custom_wrappers)
    for name, source in part_files(parts, Path.cwd()).items():
        target = folder / CODE_FOLDER / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, source.read_bytes())


def _write_checkpoint(
    run: TrainedRun,
    packed: RunDir,
    config: RunConfig,
    definition: GameDefinition,
    events_bytes: int,
) -> None:
    """Write the checkpoint as the best of its run, with new episodes and random numbers."""
    source = run.checkpoint
    state = source.state
    best = state.best
    if best is None or best.timesteps != state.num_timesteps:
        best = None
    saved = config.model_dump(mode="json", by_alias=True)
    state = state.model_copy(
        update={
            "best": Best(
                timesteps=state.num_timesteps,
                mean_reward=_mean_reward(run) if best is None else best.mean_reward,
                deterministic=run.deterministic,
                seed=seed_of(saved) if best is None else best.seed,
            ),
            "evaluation_due": False,
            "stop_counters": StopCounters(),
            "events_bytes": events_bytes,
            "config": saved,
            "game": definition.model_dump(mode="json", by_alias=True),
            "given_callbacks": (),
        }
    )
    files: dict[FileName, bytes] = {
        "state.json": state.model_dump_json(indent=2).encode(),
        "play.json": _without_emulators(run).model_dump_json().encode(),
        "arrays.safetensors": safetensors.numpy.save({}),
        "policy.safetensors": (source.path / "policy.safetensors").read_bytes(),
        "optimizer.safetensors": (source.path / "optimizer.safetensors").read_bytes(),
    }
    packed.checkpoints.mkdir(parents=True)
    path = packed.checkpoint(state.num_timesteps)
    write_files(path, ((name, (content,)) for name, content in files.items()))


def _without_emulators(run: TrainedRun) -> TrainingState:
    """Return the state of the training without its episodes, curves and random numbers."""
    evaluations = ""
    algorithm: Mapping[str, Any] = {}
    n_episodes = 0
    name: FileName = "play.json"
    if name in run.checkpoint.files:  # the best checkpoint of a fork's parent has none
        play = run.checkpoint.play()
        evaluations = play.evaluations
        algorithm = play.algorithm
        n_episodes = play.n_episodes
    return TrainingState(
        random=None,
        log=LogState(values={}, counts={}, excluded={}, file_bytes={}),
        n_episodes=n_episodes,
        episodes=(),
        successes=(),
        envs=None,
        seeds=(),
        evaluations=evaluations,
        algorithm=dict(algorithm),
    )


def _mean_reward(run: TrainedRun) -> float:
    """Return the mean reward of the policy in its run's evaluations; 0 if it was in none."""
    played = [
        event.mean_reward
        for event in read_events(run.run_dir)
        if isinstance(event, Evaluated)
        and event.policy_timesteps == run.state.num_timesteps
        and event.deterministic == run.deterministic
    ]
    return played[-1] if played else 0.0


def _write_events(run: TrainedRun, packed: RunDir, shared: tuple[type[Event], ...]) -> int:
    """Write the events that tell how the training went; return their bytes up to the checkpoint."""
    timesteps = run.state.num_timesteps
    lines = b""
    n_bytes: int | None = None
    for event in read_events(run.run_dir):
        if not isinstance(event, shared):
            continue
        is_after = event.timesteps > timesteps or isinstance(event, Ended)
        if n_bytes is None and is_after:
            n_bytes = len(lines)
        lines += _shared(event, len(lines)).model_dump_json().encode() + b"\n"
    write_atomic(packed.events, lines)
    return len(lines) if n_bytes is None else n_bytes


def _shared(event: Event, n_bytes: int) -> Event:
    """Return an event without what is this machine's, as it stands after `n_bytes`."""
    if isinstance(event, Resumed):
        unsaid: dict[str, object] = {"changes": (), "set_aside": ()}
        return event.model_copy(update={"superseded_from_bytes": n_bytes, **unsaid})
    if isinstance(event, Ended) and event.reason != "completed":
        return event.model_copy(update={"text": ""})
    return event


def _copy_reports(run: TrainedRun, packed: RunDir) -> None:
    source = run.run_dir
    if source.identity_file.exists():
        write_saved(packed.identity_file, source.identity().model_copy(update={"parent": None}))
    else:
        packed.identity()
    if source.evaluations.exists():
        write_atomic(packed.evaluations, source.evaluations.read_bytes())
    if run.game.potentials:
        terms = {name: potential.saved() for name, potential in run.game.potentials.items()}
        for name in terms.keys() & run.config.env.rewards.keys():
            folder = str(_shared_folder(Path(terms[name].folder)))
            terms[name] = terms[name].model_copy(update={"folder": folder})
        write_saved(packed.potentials, SavedPotentials(terms=terms))


# ---------------------------------------------------------------------- for others


def _write_zip(agent: TrainedRun, folder: Path, name: str, address: AgentAddress) -> str | None:
    """Write Stable-Baselines3's zip and `config.json`; return the zip's name, if SB3 has one.

    An agent that comes with game_rl has none, as `game-rl export` writes it.
    """
    try:
        exchangeable(agent.config)
        has_zip = isinstance(address, HubAddress)
    except UsageError:
        has_zip = False
    if not has_zip:
        settings = agent.config.model_dump(mode="json", by_alias=True)
        write_atomic(folder / "config.json", _json({"game_rl": settings}))
        return None
    zip_name = f"{name}.zip"
    export_policy(agent, folder / zip_name)
    with zipfile.ZipFile(folder / zip_name) as archive:
        data: dict[str, Any] = json.loads(archive.read("data"))
    for value in data.values():
        if isinstance(value, dict):
            value.pop(":serialized:", None)  # a pickle, which nobody should read from here
    data["system_info"] = installed_versions()
    write_atomic(folder / "config.json", _json(data))
    return zip_name


def _results(evaluation: Evaluation) -> dict[str, object]:
    """Return SB3's keys first, then the same as game-rl evaluate, and every episode."""
    return {
        "mean_reward": evaluation.mean_reward,
        "std_reward": evaluation.std_reward,
        "is_deterministic": evaluation.deterministic,
        "n_eval_episodes": evaluation.episodes,
        "eval_datetime": datetime.now(UTC).replace(microsecond=0).isoformat(),
        **evaluation.to_json(),
        "rewards": list(evaluation.rewards),
        "lengths": list(evaluation.lengths),
        "successes": list(evaluation.successes),
    }


def _draw_curves(packed: ShownRun, title: str) -> bool:
    """Draw the evaluations of the training, if it had any."""
    panels = run_panels(grouped_runs([packed]), "timesteps")[:_PANELS]
    if not panels:
        return False
    write_atomic(packed.run_dir / "curves.png", panels_png(panels, title))
    return True


def _hashed(folder: Path) -> Iterator[PackagedFile]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            yield PackagedFile(path=name, bytes=path.stat().st_size, sha256=file_sha256(path))


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
