"""`game-rl push`, `pull`: agents on the Hugging Face Hub."""

import argparse
import json
import sys
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from game_rl.checkpoints.run_game import check_playable
from game_rl.cli.arguments import add_config_arguments, add_run_arguments, named_policy, positive
from game_rl.cli.outputs import add_output_folder
from game_rl.cli.printing import (
    PROGRESS,
    SafeConsole,
    add_json,
    print_notes,
    print_result,
    print_table,
)
from game_rl.config.loader import load_config
from game_rl.errors import UsageError
from game_rl.files.durable_files import new_directory
from game_rl.files.pretrained import PACKAGE_FILE
from game_rl.hub.agent_package import AgentPackage, HubAddress, parse_address
from game_rl.system.packages import check_extra
from game_rl.system.units import counted, format_bytes

if TYPE_CHECKING:
    from game_rl.hub.hub_client import HubRepository, Listing

_ADDRESS = "hf:USER/NAME"


def add_push(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_push)
    add_run_arguments(parser)
    parser.add_argument(
        "to", metavar=_ADDRESS, help="repository on the Hugging Face Hub; it is made if necessary"
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        default=100,
        metavar="N",
        help="episodes of the evaluation on the card (default: 100)",
    )
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be sent, and send nothing"
    )
    add_output_folder(
        parser, "--output", text="new folder to keep the files in, to look at them", default=None
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before the files are sent")
    add_json(parser)


def add_pull(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_pull)
    parser.add_argument(
        "address",
        metavar=f"{_ADDRESS}[@REVISION]",
        help="repository on the Hugging Face Hub; REVISION is a branch, tag or commit",
    )
    add_output_folder(parser, "--folder", text="new folder for the agent (default: runs/NAME)")
    parser.add_argument(
        "--with-code",
        action="store_true",
        help="also fetch the agent's Python code, which runs with your rights when the agent plays",
    )
    zips = parser.add_argument_group(
        "policies of Stable-Baselines3",
        "A repository that game-rl did not write has a zip of Stable-Baselines3. Its weights "
        "start a run of the config that FILE or --config names, as with game-rl import.",
    )
    zips.add_argument("--file", metavar="NAME", help="the zip, if the repository has several")
    add_config_arguments(parser, required=False)
    add_json(parser)


def _push(arguments: argparse.Namespace) -> int:
    address = parse_address(arguments.to)
    if address.revision is not None:
        raise UsageError(f"{arguments.to}: a push goes to the branch main; leave @ out")
    if not arguments.dry_run:
        check_extra("huggingface_hub", "game-rl push", way_out="add --dry-run")
        if not arguments.yes and (arguments.json or not sys.stdin.isatty()):
            raise UsageError(
                "push asks before it sends, and there is no terminal to answer in; add --yes"
            )
    check_extra("av", "the clip of game-rl push")
    output: Path | None = arguments.output
    if output is not None and output.exists():
        raise UsageError(f"--output {output} exists already; name a new folder")
    root, checkpoint = named_policy(arguments)
    check_playable(root, checkpoint, arguments.game)
    from game_rl.hub.agent_folder import pack_agent
    from game_rl.playback.trained_run import open_trained_run

    run = open_trained_run(root, checkpoint, arguments.game)
    notes = run.game_notes(arguments.game)
    print_notes(notes)
    with TemporaryDirectory(prefix="game_rl_push_") as temporary:
        folder = output or Path(temporary) / "agent"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with new_directory(folder) as new:
            package = pack_agent(
                run,
                address,
                new,
                game=arguments.game,
                episodes=arguments.episodes,
                tell=lambda text: PROGRESS.print(f"{text} …", markup=False, highlight=False),
            )
        return _send(arguments, address, folder, package)


def _send(
    arguments: argparse.Namespace, address: HubAddress, folder: Path, package: AgentPackage
) -> int:
    from game_rl.hub.push import packed_files, personal_places, push_agent

    files = {path: file.stat().st_size for path, file in packed_files(folder).items()}
    n_bytes = sum(files.values())
    these = f"{counted(len(files), 'file')}, {format_bytes(n_bytes)}"
    personal = personal_places(folder)
    facts = {
        "to": str(address),
        "agent": package.agent,
        "files": files,
        "bytes": n_bytes,
        "not_shared": [*package.states_left_out, *map(str, package.keys_left_out)],
        "personal": personal,
    }
    if not arguments.json:
        print_table(
            SafeConsole(), ("file", "size"), [(p, format_bytes(n)) for p, n in files.items()]
        )
        _print_what_stays(package)
    print_notes(
        f"{path} names {place}, a folder of this machine; everybody will read it"
        for path, place in personal
    )
    kept = "" if arguments.output is None else f"; the files are in {arguments.output}"
    if arguments.dry_run:
        text = f"{these} would go to {address}; nothing was sent{kept}"
        print_result(arguments, facts | {"commit": None}, text)
        return 0
    from game_rl.hub.hub_client import HubRepository

    repository = HubRepository(address)
    if not arguments.yes:
        question = f"send {these} to {repository.url}? [y/N] "
        if input(question).strip().lower() not in ("y", "yes"):
            print(f"nothing was sent{kept}")
            return 0
    commit = push_agent(
        repository,
        folder,
        message=f"{package.agent} at timestep {package.timesteps:,}",
        private=arguments.private,
    )
    print_result(
        arguments,
        facts | {"commit": commit, "url": repository.url},
        f"{repository.url}: {these} sent and verified there{kept}",
        f"others get it with: game-rl pull {address}",
    )
    return 0


def _print_what_stays(package: AgentPackage) -> None:
    rom = package.rom
    stays = [] if rom.is_bundled else [f"the ROM (the card has its SHA-1, {rom.sha1})"]
    stays += [f"the start state game/{path}" for path in package.states_left_out]
    stays += [f"{key} of the config" for key in package.keys_left_out]
    if stays:
        print(f"not included: {', '.join(stays)}")


def _pull(arguments: argparse.Namespace) -> int:
    address = parse_address(arguments.address)
    check_extra("huggingface_hub", "game-rl pull")
    from game_rl.hub.hub_client import HubRepository
    from game_rl.hub.pull import find_listing

    folder: Path = arguments.folder or Path("runs") / address.name
    if folder.exists():
        raise UsageError(f"{folder} exists already; name another folder with --folder")
    repository = HubRepository(address)
    listing = find_listing(repository)
    if PACKAGE_FILE not in listing.files:
        return _pull_zip(arguments, repository, listing, folder)
    if arguments.config is not None or arguments.set or arguments.file is not None:
        raise UsageError(
            f"{address} is an agent of game_rl and has its own config: leave the config, KEY=VALUE "
            "and --file out; game-rl train --fork changes keys"
        )
    return _pull_agent(arguments, repository, listing, folder)


def _pull_agent(
    arguments: argparse.Namespace, repository: "HubRepository", listing: "Listing", folder: Path
) -> int:
    from game_rl.hub.pull import notes_on, pull_agent

    columns = (TextColumn("pulling"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=PROGRESS) as progress:
        task = progress.add_task("", total=None)
        run_dir, package = pull_agent(
            repository,
            listing,
            folder,
            with_code=arguments.with_code,
            begin=lambda n_bytes: progress.update(task, total=n_bytes),
            tell=lambda n_bytes: progress.advance(task, n_bytes),
        )
    notes = notes_on(package, folder)
    print_notes(notes)
    run = quote(str(run_dir.root))
    print_result(
        arguments,
        {
            "folder": str(folder),
            "kind": "agent",
            "agent": package.agent,
            "timesteps": package.timesteps,
            "commit": listing.commit,
            "notes": notes,
        },
        f"{folder}: {package.agent} at timestep {package.timesteps:,}, "
        f"{format_bytes(package.nbytes)}, every file as it was pushed",
        f"play it: game-rl watch {run}, game-rl evaluate {run}, game-rl record {run}\n"
        f"train it on: game-rl train --fork {run} run_dir=...",
    )
    return 0


def _pull_zip(
    arguments: argparse.Namespace, repository: "HubRepository", listing: "Listing", folder: Path
) -> int:
    """Begin a run with the weights of a zip of Stable-Baselines3."""
    from game_rl.hub.pull import fetch_zip, zip_name

    name = zip_name(repository, listing, arguments.file)
    if arguments.config is None:
        raise UsageError(
            f"{repository.address} has {name} of Stable-Baselines3, which does not say which game "
            "it plays: name the config of a run whose network it fits, as in game-rl pull "
            f"{repository.address} duel_ppo"
        )
    overrides = [f"run_dir={json.dumps(str(folder))}", *arguments.set]
    config = load_config(arguments.config, overrides)
    from game_rl.cli.checkpoint_commands import import_zip

    with TemporaryDirectory(prefix="game_rl_pull_") as temporary:
        return import_zip(arguments, fetch_zip(repository, listing, name, Path(temporary)), config)
