"""Brings an agent from the Hub to a folder, from which it plays as from the run that trained it.

Nothing that arrives is run. Files arrive in a hidden folder beside the new one, each compared with
its hash, and the folder appears in one rename. A pull that is cut leaves the files that are whole,
which the next one keeps.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from game_rl.checkpoints.checkpoint_folder import CheckpointFolder
from game_rl.config.loader import load_config, load_yaml_model
from game_rl.config.schema import RunConfig
from game_rl.emulator.rom_search import has_rom, rom_places
from game_rl.errors import GameFileError, StorageError, UsageError
from game_rl.files.durable_files import (
    link_file,
    remove_directory,
    rename,
    sync_directory,
)
from game_rl.files.pretrained import PACKAGE_FILE
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import file_sha256
from game_rl.games.definition import GameDefinition, bundled_games
from game_rl.hub.agent_package import (
    CARD,
    GAME_FOLDER,
    LARGEST_AGENT_BYTES,
    LARGEST_MANIFEST_BYTES,
    REPLAY,
    AgentPackage,
    PackagedFile,
    keys_of_its_author,
    parse_package,
)
from game_rl.hub.hub_client import HubRepository, Listing
from game_rl.system.units import format_bytes

_GAME_FILE = f"{GAME_FOLDER}/game.yaml"
_LARGEST_CARD_BYTES = 2**20
_CLIP = "best.mp4"  # which the page and the report show first

Tell = Callable[[int], None]


def find_listing(repository: HubRepository) -> Listing:
    """Return the files at the repository's address.

    Raises:
        UsageError: there is no such repository, or the Hub refuses.
    """
    listing = repository.listing()
    if listing is None:
        raise UsageError(
            f"there is no model at {repository.url}, or it is private and this machine is not "
            "logged in; correct the address, or log in with hf auth login"
        )
    return listing


def pull_agent(
    repository: HubRepository,
    listing: Listing,
    root: Path,
    *,
    with_code: bool = False,
    begin: Callable[[int], None] = lambda _: None,
    tell: Tell = lambda _: None,
) -> tuple[RunDir, AgentPackage]:
    """Fetch the agent to the folder `root`, which must be new.

    Args:
        with_code: whether to fetch its Python code, if it has some.
        begin: called with the number of bytes before they are fetched.
        tell: called with the number of bytes of each piece.

    Raises:
        UsageError: `root` exists, or the agent has code and `with_code` is False.
        StorageError: the agent is not whole, not what its manifest says, or the Hub fails. There
            is no folder `root` then.
    """
    with _arriving(root) as arriving:
        manifest = arriving.root / PACKAGE_FILE
        package = _manifest(repository, listing, manifest)
        first = [package.file(name) for name in (arriving.config.name, _GAME_FILE)]
        _fetch_files(repository, listing, arriving.root, [file for file in first if file], tell)
        config = _check_config(arriving, package, repository)
        code = list(_code_in(arriving, config, package))
        if code and not with_code:
            remove_directory(arriving.root)
            raise UsageError(_told_code(repository, listing, package, code))
        begin(package.nbytes)
        _fetch_files(repository, listing, arriving.root, package.files, tell)
        _fetch_card(repository, listing, arriving.root)
        _check_checkpoint(arriving, package, repository)
        _show_clip(arriving)
    return RunDir(root), package


def notes_on(package: AgentPackage, folder: Path) -> list[str]:
    """Return what a person has to bring before the agent can play, in sentences."""
    notes = []
    rom = package.rom
    if not rom.is_bundled and not has_rom({"sha256": rom.sha256}):
        notes.append(
            f"ROMs are not shared: put {rom.title} ({rom.header} in its header, SHA-1 {rom.sha1}) "
            f"into {' or '.join(rom_places())}"
        )
    if package.states_left_out:
        files = ", ".join(str(folder / GAME_FOLDER / path) for path in package.states_left_out)
        notes.append(
            f"start states that hold the memory of a ROM are not shared: {files}; make them with "
            "game-rl play, or ask the author of the agent"
        )
    return notes


@contextmanager
def _arriving(root: Path) -> Iterator[RunDir]:
    """Yield the hidden folder, which becomes `root` when the block ends."""
    if root.exists():
        raise UsageError(f"{root} exists already; name another folder with --folder")
    root.parent.mkdir(parents=True, exist_ok=True)
    arriving = RunDir(root.with_name(f".{root.name}.pull"))
    arriving.root.mkdir(exist_ok=True)
    with arriving.locked():
        yield arriving
        sync_directory(arriving.root)
    rename(arriving.root, root)
    sync_directory(root.parent)


def _manifest(repository: HubRepository, listing: Listing, path: Path) -> AgentPackage:
    """Return the manifest; what an earlier pull of another agent has left is deleted."""
    remote = listing.files[PACKAGE_FILE]
    if not 0 <= remote.nbytes <= LARGEST_MANIFEST_BYTES:
        raise StorageError(
            f"{PACKAGE_FILE} of {repository.url} has {format_bytes(remote.nbytes)}, far more than "
            "a manifest needs; it may have been made to exhaust the memory"
        )
    before = path.read_bytes() if path.exists() else None
    repository.fetch(PACKAGE_FILE, listing.commit, remote, path)
    content = path.read_bytes()
    if before != content:
        for other in path.parent.iterdir():
            if other.is_dir():
                shutil.rmtree(other)
            elif other.name not in ("lock", path.name):
                other.unlink()
    return parse_package(content, f"{PACKAGE_FILE} of {repository.url}")


def _fetch_files(
    repository: HubRepository,
    listing: Listing,
    folder: Path,
    files: "list[PackagedFile] | tuple[PackagedFile, ...]",
    tell: Tell,
) -> None:
    for file in files:
        remote = listing.files.get(file.path)
        if remote is None or remote.nbytes != file.bytes:
            found = "is missing" if remote is None else f"has {format_bytes(remote.nbytes)}"
            raise StorageError(
                f"{file.path} of {repository.url} {found}, and {PACKAGE_FILE} says "
                f"{format_bytes(file.bytes)}; the agent was changed since it was pushed: ask its "
                "author to push it again"
            )
        target = folder / file.path
        if target.exists() and file_sha256(target) == file.sha256:
            tell(file.bytes)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if repository.fetch(file.path, listing.commit, remote, target, tell) != file.sha256:
            target.unlink()
            raise StorageError(
                f"{file.path} of {repository.url} is not what {PACKAGE_FILE} says: its sha256 "
                "differs; the agent was changed since it was pushed: ask its author to push "
                "it again"
            )


def _fetch_card(repository: HubRepository, listing: Listing, folder: Path) -> None:
    """Fetch the card as it is now; its author may have written on since the agent was pushed."""
    remote = listing.files.get(CARD)
    if remote is not None and 0 <= remote.nbytes <= _LARGEST_CARD_BYTES:
        repository.fetch(CARD, listing.commit, remote, folder / CARD)


# ---------------------------------------------------------------------- checks


def _check_config(arriving: RunDir, package: AgentPackage, repository: HubRepository) -> RunConfig:
    """Return the config, if it names nothing outside its folder."""
    if not arriving.config.exists():
        raise StorageError(f"{PACKAGE_FILE} of {repository.url} names no {arriving.config.name}")
    config = load_config(arriving.config, is_saved=True)
    own_file = arriving.root / _GAME_FILE
    is_own = Path(config.game) == own_file.absolute() and package.file(_GAME_FILE) is not None
    if not is_own and config.game not in bundled_games():
        raise StorageError(
            f"the config of {repository.url} names the game {config.game}, which is neither in "
            "the repository nor comes with game_rl; install the newest game_rl, or ask its author"
        )
    _refuse_keys(config, f"the config of {repository.url}")
    if is_own:
        definition = load_yaml_model(own_file, GameDefinition, error=GameFileError)
        named = [path for _, path in definition.state_files()]
        named += definition.offset_files_of_parts().values()
        named += filter(None, (definition.symbols, definition.place_offsets, definition.rom.path))
        outside = [path for path in named if path.is_absolute() or ".." in path.parts]
        if outside:
            raise StorageError(
                f"{_GAME_FILE} of {repository.url} names {outside[0]}, which is outside its "
                "folder; nothing was kept"
            )
    return config


def _refuse_keys(config: RunConfig, source: str) -> None:
    if keys := keys_of_its_author(config):
        raise StorageError(
            f"{source} has the key {'.'.join(keys[0])}, which names a folder, a service or code of "
            "somebody else's; an agent that game-rl push has packed has none, so it was changed"
        )


def _code_in(arriving: RunDir, config: RunConfig, package: AgentPackage) -> Iterator[str]:
    """Yield the Python code that the agent would run, in words."""
    for part in config.custom_parts:
        yield f"{'.'.join(part.key)} runs {part.reference}"
    game_file = arriving.root / _GAME_FILE
    if game_file.exists():
        definition = load_yaml_model(game_file, GameDefinition, error=GameFileError)
        if definition.reward is not None:
            yield f"the reward of {_GAME_FILE} runs {definition.reward}"
    yield from (f"it brings the file {file.path}" for file in package.files if file.is_code)


def _told_code(
    repository: HubRepository, listing: Listing, package: AgentPackage, code: list[str]
) -> str:
    file = next((file.path for file in package.files if file.is_code), "")
    place = f"{repository.url}/{'blob' if file else 'tree'}/{listing.commit}/{file}"
    return (
        f"{repository.address} brings Python code, which would run with your rights when the agent "
        f"plays: {'; '.join(code)}; read it at {place}, and add --with-code if you trust it"
    )


def _check_checkpoint(arriving: RunDir, package: AgentPackage, repository: HubRepository) -> None:
    paths = arriving.checkpoints_newest_first()
    if len(paths) != 1:
        raise StorageError(f"{repository.url} has {len(paths)} checkpoints, but an agent has one")
    checkpoint = CheckpointFolder(paths[0]).verify()
    _refuse_keys(checkpoint.config, f"the checkpoint of {repository.url}")
    if checkpoint.state.rom_sha256 != package.rom.sha256:
        raise StorageError(
            f"the checkpoint of {repository.url} was trained on another ROM than {PACKAGE_FILE} "
            "says; ask its author to push it again"
        )


def _show_clip(arriving: RunDir) -> None:
    """Put the clip where the page and the report look for it."""
    clip = arriving.root / REPLAY
    if clip.exists() and not arriving.videos.exists():
        arriving.videos.mkdir()
        link_file(clip, arriving.videos / _CLIP)


# ---------------------------------------------------------------------- Stable-Baselines3's zips


def zip_name(repository: HubRepository, listing: Listing, given: str | None) -> str:
    """Return the path of the zip of Stable-Baselines3 in a repository.

    Args:
        given: what a person has named; None if the repository has only one.

    Raises:
        UsageError: there is no such zip, or there are several.
    """
    zips = sorted(path for path in listing.files if path.endswith(".zip"))
    if not zips:
        raise UsageError(
            f"{repository.address} is not an agent: it has neither {PACKAGE_FILE} nor a zip of "
            "Stable-Baselines3"
        )
    if given is not None and given not in zips:
        raise UsageError(f"{repository.address} has no zip {given}; it has {', '.join(zips)}")
    if given is None and len(zips) > 1:
        raise UsageError(f"{repository.address} has {', '.join(zips)}: name one with --file")
    return given or zips[0]


def fetch_zip(repository: HubRepository, listing: Listing, name: str, folder: Path) -> Path:
    """Fetch a zip of Stable-Baselines3 to `folder`, which is data here; see `sb3_zip`.

    Raises:
        StorageError: it is too large, or the Hub fails.
    """
    remote = listing.files[name]
    if not 0 <= remote.nbytes <= LARGEST_AGENT_BYTES:
        raise StorageError(
            f"{name} of {repository.url} has {format_bytes(remote.nbytes)}, more than the limit "
            f"of {format_bytes(LARGEST_AGENT_BYTES)}"
        )
    target = folder / "model.zip"
    repository.fetch(name, listing.commit, remote, target)
    return target
