"""`game-rl remote`: copies in storage, for runs and experiments."""

import argparse
import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
)
from rich.table import Table

from game_rl import events
from game_rl.checkpoints.checkpoint_files import read_manifest, read_verified
from game_rl.checkpoints.named import open_run
from game_rl.checkpoints.run_game import find_game
from game_rl.cli.parser import add_command, commands_of
from game_rl.cli.printing import PROGRESS, SafeConsole, add_json, print_facts, print_result
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.loader import load_config, load_yaml_model
from game_rl.config.output_config import UploadConfig
from game_rl.config.values import expanded_path
from game_rl.emulator.rom_search import has_rom, rom_places
from game_rl.errors import GameFileError, Interrupted, StorageError, UsageError
from game_rl.experiments.backup import (
    own_state,
    push_settings,
    remove_snapshot,
    take_snapshot,
    uploaded_to,
    write_state,
)
from game_rl.experiments.experiment_dir import ExperimentDir, find_experiment
from game_rl.files.run_dir import upload_lock
from game_rl.games.definition import GameDefinition
from game_rl.storage.background import upload_settings
from game_rl.storage.faults import NO_PATIENCE, PASSING_FAULTS, Patience, StoreFault
from game_rl.system.packages import check_extra
from game_rl.system.units import counted, format_bytes, format_duration

if TYPE_CHECKING:
    from game_rl.files.run_dir import RunDir
    from game_rl.storage.inventory import (
        ExperimentAddress,
        RemoteAddress,
    )
    from game_rl.storage.object_store import ObjectStore


_TASK = TaskID(0)
_MOST_FAILURES = 120  # with pauses of five seconds, for about ten minutes
_CONTINUES = "the same command continues where it stopped"
_URL = (
    "s3://bucket/folder, gs://…, az://… or file:///…; …/runs/ID names one run, …/experiments/ID "
    "one experiment"
)


def add_remote(parser: argparse.ArgumentParser) -> None:
    remote = commands_of(parser)
    listing = add_command(
        remote,
        "list",
        "list the runs and experiments at an address",
        "game-rl remote list s3://bucket/folder",
    )
    listing.set_defaults(command=_list)
    listing.add_argument("url", metavar="URL", help=_URL)
    add_json(listing, "list")
    fetching = add_command(
        remote,
        "fetch",
        "fetch a run or an experiment to a new folder, where it can be resumed and played",
        "game-rl remote fetch s3://bucket/folder/runs/ID@301056 runs/mine",
    )
    fetching.set_defaults(command=_fetch)
    fetching.add_argument(
        "url",
        metavar="URL[@T]",
        help=f"{_URL}; @T: a run's checkpoint of timestep T, or an experiment's generation T "
        "(default: the newest)",
    )
    fetching.add_argument("folder", type=Path, metavar="DIR", help="folder to make")
    add_json(fetching)
    claims = fetching.add_mutually_exclusive_group()
    claims.add_argument("--refuse-active", action="store_true", help=argparse.SUPPRESS)
    claims.add_argument("--take-over", action="store_true", help=argparse.SUPPRESS)
    verifying = add_command(
        remote,
        "verify",
        "read all stored checkpoints and generations, and compare them with their hashes",
        "game-rl remote verify s3://bucket/folder",
    )
    verifying.set_defaults(command=_verify)
    verifying.add_argument("url", metavar="URL[@T]", help=_URL)
    add_json(verifying)
    pushing = add_command(
        remote,
        "push",
        "upload everything of a run or an experiment that is not stored yet",
        "game-rl remote push runs/duel_ppo",
    )
    pushing.set_defaults(command=_push)
    pushing.add_argument(
        "run",
        type=expanded_path,
        metavar="RUN",
        help="run directory, or the directory of an experiment",
    )
    pushing.add_argument(
        "--to", metavar="URL", help="address to upload to (default: upload.to of the config)"
    )
    pushing.add_argument(
        "--take-over", action="store_true", help="upload even if another machine uploads this run"
    )
    add_json(pushing)


def _opened(url: str, patience: Patience = NO_PATIENCE) -> "tuple[ObjectStore, RemoteAddress]":
    from game_rl.storage.inventory import RemoteAddress
    from game_rl.storage.object_store import ObjectStore

    if "://" not in url and Path(url).exists():
        there = Path(url).resolve().as_uri()
        raise UsageError(
            f"{url} is a path of this machine, not an address; write {there} if runs were "
            "uploaded there; game-rl remote push uploads a run, and game-rl runs lists those here"
        )
    address = RemoteAddress.parse(url)
    return ObjectStore(address.to, patience=patience), address


def _named(fault: StoreFault, way_on: str) -> StorageError | UsageError:
    """Return a fault as a command reports it: a place that is not there is the user's mistake."""
    if fault.kind == "missing":
        return UsageError(str(fault))
    return StorageError(f"{fault}; {way_on}") if fault.kind in PASSING_FAULTS else fault


Command = Callable[[argparse.Namespace], int]


def _waiting_for_storage(way_on: str) -> Callable[[Command], Command]:
    """Carry out a command in a thread, as a request may block for minutes and sees no Ctrl-C.

    On Ctrl-C, the process ends like one that is killed: files that are whole stay.

    Args:
        way_on: how to continue after an interruption or a long outage.
    """

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def carried_out(arguments: argparse.Namespace) -> int:
            check_extra("obstore", "game-rl remote")
            done: Future[int] = Future()

            def settle() -> None:
                try:
                    done.set_result(command(arguments))
                except BaseException as error:  # noqa: BLE001 - raised again by the one that waits
                    done.set_exception(error)

            threading.Thread(target=settle, daemon=True).start()
            try:
                return done.result()
            except StoreFault as fault:
                raise _named(fault, way_on) from fault
            except KeyboardInterrupt:
                SafeConsole(stderr=True).show_cursor()  # which a bar has hidden
                print(f"interrupted; {way_on}", file=sys.stderr, flush=True)
                os._exit(Interrupted("interrupted").exit_code)

        return carried_out

    return decorated


def _bar(
    text: str, count: ProgressColumn, *, total: int | None = None, console: Console = PROGRESS
) -> Progress:
    """Return the progress of one task, `_TASK`."""
    progress = Progress(TextColumn(text), BarColumn(), count, console=console)
    progress.add_task("", total=total)
    return progress


@_waiting_for_storage(_CONTINUES)
def _fetch(arguments: argparse.Namespace) -> int:
    from game_rl.storage.fetch import fetch_run
    from game_rl.storage.inventory import ExperimentAddress

    is_taken_over = not arguments.refuse_active
    if (found := ExperimentAddress.parse(arguments.url)) is not None:
        return _fetch_experiment(found, arguments, take_over=is_taken_over)
    store, address = _opened(arguments.url, _patience())
    with _bar("fetching", DownloadColumn()) as progress:
        fetched = fetch_run(
            store,
            address,
            arguments.folder,
            take_over=is_taken_over,
            begin=lambda manifest: progress.update(_TASK, total=manifest.n_bytes),
            tell=lambda n_bytes: progress.advance(_TASK, n_bytes),
        )
    manifest = fetched.manifest
    n_bytes = fetched.fetched_bytes
    rom = missing_rom(fetched.run_dir)
    print_result(
        arguments,
        {
            "folder": str(arguments.folder),
            "kind": "run",
            "id": manifest.run.id,
            "timesteps": manifest.timesteps,
            "fetched_bytes": n_bytes,
            "missing_rom": rom,
        },
        f"{arguments.folder}: the run {manifest.run.id} at timestep {manifest.timesteps:,}, "
        f"{format_bytes(n_bytes)} fetched and verified" + (f"\n{rom}" if rom else ""),
    )
    return 0


def missing_rom(run_dir: "RunDir") -> str | None:
    """Return what to do about the missing ROM of a fetched run, or None; no ROM is ever stored."""
    game = Path(load_config(run_dir.config, is_saved=True).game)
    newest = run_dir.checkpoints_newest_first()
    if game.suffix != ".yaml" or not game.is_file() or not newest:
        return None
    definition = load_yaml_model(game, GameDefinition, error=GameFileError)
    if definition.rom.path is None:
        place = f"into {' or '.join(rom_places())}"
        is_there = has_rom(definition.rom.hashes)
    else:
        rom = game.parent / definition.rom.path
        place = f"at {rom}"
        is_there = rom.is_file()
    if is_there:
        return None
    state = json.loads(read_verified(newest[0], read_manifest(newest[0]), "state.json"))
    return f"ROMs are not stored: put the ROM with sha256 {state['rom_sha256']} {place}"


@dataclass(frozen=True)
class _Verified:
    """What was read of an experiment, or of all runs, at an address.

    Attributes:
        failure: error that says which of it cannot be fetched; empty if all can.
    """

    facts: Mapping[str, object]
    text: str
    failure: str = ""


@_waiting_for_storage("the same command reads everything again")
def _verify(arguments: argparse.Namespace) -> int:
    found = []
    for one in (*_verified_experiments(arguments.url), *_verified_runs(arguments.url)):
        found.append(one)
        if one.text and not arguments.json:
            print(one.text)
    if arguments.json:
        is_whole = not any(one.failure for one in found)
        print_facts({"is_whole": is_whole, "found": [dict(one.facts) for one in found]})
    if failures := [one.failure for one in found if one.failure]:
        raise StorageError("\n".join(failures))
    return 0


def _verified_runs(url: str) -> "Iterator[_Verified]":
    """Verify all checkpoints of runs at an address, unless it has experiments alone."""
    from game_rl.storage.inventory import (
        ExperimentAddress,
        stored_experiments,
        stored_runs,
        verify_stored,
    )

    if ExperimentAddress.parse(url) is not None:
        return
    store, address = _opened(url, _patience())
    if not stored_runs(store) and address.run is None and stored_experiments(store):
        return
    with _bar("reading", MofNCompleteColumn()) as progress:
        verdict = verify_stored(
            store, address, lambda read, count: progress.update(_TASK, completed=read, total=count)
        )
    damage = {f"{run}@{timesteps}": text for (run, timesteps), text in verdict.damage.items()}
    facts = {
        "kind": "runs",
        "checkpoints": verdict.n_checkpoints,
        "blobs": verdict.n_blobs,
        "bytes": verdict.n_bytes,
        "damage": damage,
    }
    text = (
        f"{counted(verdict.n_checkpoints, 'checkpoint')}, {counted(verdict.n_blobs, 'blob')}, "
        f"{format_bytes(verdict.n_bytes)}: every byte is as it was written"
    )
    failure = (
        f"{len(damage)} of {verdict.n_checkpoints} checkpoints at {url} "
        "cannot be fetched; if this machine has the run, delete those blobs and push it again"
    )
    if damage:
        text = "\n".join(f"{name}: {what}" for name, what in damage.items())
    yield _Verified(facts, text, failure if damage else "")


@_waiting_for_storage(_CONTINUES)
def _push(arguments: argparse.Namespace) -> int:
    from game_rl.storage.upload_process import push

    if ExperimentDir(arguments.run).exists():
        return _push_experiment(arguments)
    run_dir, config = open_run(arguments.run)
    run_dir.refuse_agent()
    config = config.model_copy(update={"game": find_game(run_dir, config)})
    if arguments.to is not None:
        there = _upload(arguments.to)
        upload = (config.upload or there).model_copy(update={"to": there.to})
        config = config.model_copy(update={"upload": upload})
    newest = run_dir.checkpoints_newest_first()
    settings = upload_settings(
        config,
        run_dir,
        begins_at=int(newest[0].name) if newest else 0,
        take_over=arguments.take_over,
    )
    if settings is None:
        raise UsageError(f"{arguments.run} has no upload.to in its config; add --to URL")
    console = PROGRESS if arguments.json or arguments.quiet else SafeConsole()
    progress = _bar("sending", DownloadColumn(), console=console)
    sent = list[events.Uploaded]()

    def show(event: events.Event) -> None:
        match event:
            case events.UploadProgress():
                total = max(progress.tasks[0].total or 0, event.waiting_bytes)
                done = total - event.waiting_bytes
                progress.update(_TASK, total=total, completed=done)
            case events.Uploaded():
                sent.append(event)
                took = format_duration(event.seconds)
                text = f"✓ checkpoint {int(event.checkpoint):,} uploaded in {took}, verified"
                console.print(text, highlight=False, soft_wrap=True)
            case events.Warned():
                console.print(event.text, markup=False, soft_wrap=True)

    with progress:
        push(settings, show, advice=_RETRIED, most_failures=_MOST_FAILURES)
    if arguments.json:
        facts = {"to": settings.address, "kind": "run"}
        checkpoints = [int(event.checkpoint) for event in sent]
        n_bytes = sum(event.sent_bytes for event in sent)
        print_facts({**facts, "checkpoints": checkpoints, "sent_bytes": n_bytes})
    elif not sent:
        print(f"nothing to send: everything is already at {settings.address}")
    return 0


def _upload(url: str) -> UploadConfig:
    try:
        return UploadConfig(to=url)
    except ValidationError as error:
        message = error.errors(include_input=False)[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"--to: {message}") from None


_LOCK_WAIT_S = 5.0


def _fetch_experiment(
    address: "ExperimentAddress", arguments: argparse.Namespace, *, take_over: bool
) -> int:
    """Fetch the experiment to a new folder."""
    from game_rl.storage.fetch import fetch_experiment

    folder = arguments.folder
    stored = fetch_experiment(address, folder, take_over=take_over, patience=_patience())
    kind = stored.tree.kind
    n_bytes = stored.n_bytes
    print_result(
        arguments,
        {
            "folder": str(folder),
            "kind": kind,
            "id": stored.experiment,
            "generation": stored.generation,
            "fetched_bytes": n_bytes,
        },
        f"{folder}: the {kind} {stored.experiment} after generation {stored.generation}, "
        f"{format_bytes(n_bytes)} fetched and verified",
    )
    return 0


def _verified_experiments(url: str) -> "Iterator[_Verified]":
    """Verify all blobs that the experiments at an address need."""
    from game_rl.storage.inventory import (
        ExperimentAddress,
        damaged_blobs,
        find_stored,
        needed_blobs,
        stored_experiments,
    )
    from game_rl.storage.object_store import ObjectStore

    waits = _patience()
    one = ExperimentAddress.parse(url)
    if one is not None:
        store = ObjectStore(one.to, patience=waits)
        found = [find_stored(one, waits)]
    else:
        store, address = _opened(url, waits)
        if address.run is not None or address.timesteps is not None:
            return
        found = stored_experiments(store)
    only = () if one is None or one.generation is None else (one.generation,)
    for stored in found:
        blobs = needed_blobs(store, stored, *only)
        kind = stored.tree.kind
        with _bar("reading", MofNCompleteColumn(), total=len(blobs)) as progress:
            damage = damaged_blobs(store, stored, blobs, lambda *_: progress.advance(_TASK))
        generations = list(only or stored.generations)
        n_bytes = sum(blobs.values())
        facts = {
            "kind": kind,
            "id": stored.experiment,
            "generations": generations,
            "blobs": len(blobs),
            "bytes": n_bytes,
            "damage": damage,
        }
        if damage:
            failure = (
                f"the {kind} {stored.experiment} at {store.address} cannot be fetched whole: "
                f"{'; '.join(damage)}; if this machine has it, delete those blobs and push it again"
            )
            yield _Verified(facts, "", failure)
        else:
            text = (
                f"{kind} {stored.experiment}: {counted(len(generations), 'generation')}, "
                f"{counted(len(blobs), 'blob')}, {format_bytes(n_bytes)}: every byte is as it was "
                "written"
            )
            yield _Verified(facts, text)


def _push_experiment(arguments: argparse.Namespace) -> int:
    """Upload an experiment that is not training now."""
    from game_rl.experiments.controller import experiment_state
    from game_rl.experiments.plans.plan import Plan
    from game_rl.storage.uploader import push_experiment

    root = arguments.run
    to = None if arguments.to is None else _upload(arguments.to)
    folder = find_experiment(root)
    experiment = uploaded_to(load_experiment(folder.config, is_saved=True), to)
    upload = experiment.config.upload
    if upload is None:
        raise UsageError(f"{root} has no upload.to in its config; add --to URL")
    with folder.locked(), upload_lock(root, wait_s=_LOCK_WAIT_S) as is_alone:
        if not is_alone:
            raise UsageError(f"{root} is being uploaded by another process; wait until it ends")
        state = own_state(folder, upload)
        generation = experiment_state(Plan(folder, experiment)).generation
        take_snapshot(folder, upload.what)
        settings = push_settings(folder, experiment, state, generation=generation)
        settings = settings.model_copy(update={"take_over": arguments.take_over, "is_last": True})
        write_state(folder, state)
        try:
            sent = push_experiment(settings, _patience())
        finally:
            remove_snapshot(folder)
        write_state(folder, state.model_copy(update={"generation": generation}))
    address = f"{upload.to}/{settings.place}"
    kind = experiment.config.kind
    print_result(
        arguments,
        {"to": address, "kind": kind, "generation": generation, "sent_bytes": sent},
        f"generation {generation} is at {address}; {format_bytes(sent)} sent",
    )
    return 0


_COLUMNS = ("kind", "id", "game", "kept", "newest", "size", "saved", "written by")
_TEXTS = ("kind", "id", "game", "written by")


def _list(arguments: argparse.Namespace) -> int:
    from game_rl.storage.inventory import (
        ExperimentAddress,
        find_stored,
        list_runs,
        stored_experiments,
    )

    url = arguments.url
    runs = []
    try:
        if (one := ExperimentAddress.parse(url)) is not None:
            experiments = [find_stored(one)]
        else:
            store, address = _opened(url)
            runs = [run for run in list_runs(store) if address.run in (None, run.run)]
            experiments = stored_experiments(store) if address.run is None else []
    except StoreFault as fault:
        raise _named(fault, "try again") from fault
    if arguments.json:
        print_facts([*(one.to_json() for one in experiments), *(run.to_json() for run in runs)])
        return 0
    if not runs and not experiments:
        print(f"there is no run and no experiment at {url}")
        return 0
    table = Table(box=None, pad_edge=False)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in _TEXTS else "right", no_wrap=True)
    for stored in experiments:
        table.add_row(
            stored.tree.kind,
            stored.experiment,
            stored.tree.game or "",
            counted(len(stored.generations), "generation"),
            f"{stored.generations[-1]}",
            format_bytes(stored.n_bytes),
            stored.saved,
            _writer(stored.writer_host, is_active=stored.is_active),
        )
    for run in runs:
        table.add_row(
            "run",
            run.run,
            run.game,
            counted(len(run.checkpoints), "checkpoint"),
            f"{run.checkpoints[-1]:,}",
            format_bytes(run.newest_bytes),
            run.newest_saved,
            _writer(run.writer_host, is_active=run.is_active),
        )
    SafeConsole(width=max(140, SafeConsole().width)).print(table)
    return 0


def _writer(host: str | None, *, is_active: bool) -> str:
    return f"{host or ''}{', now' if is_active else ''}"


_LONGEST_OUTAGE_S = 600.0
_RETRIED = "It is retried for several minutes; Ctrl-C ends the command"


def _patience() -> Patience:
    """Return the patience of a command in the foreground, which prints a line for each outage.

    A fault that only the user can end, such as a bucket that does not exist, is not waited for.
    """

    def tell(fault: StoreFault) -> None:
        PROGRESS.print(f"{fault}. {_RETRIED}", markup=False, highlight=False, soft_wrap=True)

    return Patience(_LONGEST_OUTAGE_S, waits_for=PASSING_FAULTS, tell=tell)
