"""The settings of a run's uploader, from the run's config and its game."""

from pathlib import Path

from game_rl.config.custom_part import part_files
from game_rl.config.loader import game_path, load_yaml_model
from game_rl.config.schema import RunConfig
from game_rl.errors import GameFileError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import GameDefinition
from game_rl.storage.upload_settings import GameFiles, UploadSettings

_FOLDER = "game"  # in a fetched run
_PARTS = "parts"


def upload_settings(
    config: RunConfig, run_dir: RunDir, *, begins_at: int, take_over: bool
) -> UploadSettings | None:
    """Return the settings of the run's uploader, or None if the config has no `upload`.

    The caller holds the run's lock, since this may draw the run's identity.
    """
    if config.upload is None:
        return None
    lake = config.lake
    return UploadSettings(
        run_dir=run_dir.root.absolute(),
        run=run_dir.identity().id,
        upload=config.upload,
        lake=None if lake is None else (lake.path or run_dir.lake).absolute(),
        game=_with_own_parts(game_files(config.game), config),
        begins_at=begins_at,
        take_over=take_over,
    )


def _with_own_parts(game: GameFiles, config: RunConfig) -> GameFiles:
    """Add the modules of custom parts that are files and not installed."""
    if not config.custom_parts:
        return game
    files = {
        f"{_PARTS}/{name.as_posix()}": file
        for name, file in part_files(config.custom_parts, Path.cwd()).items()
    }
    return game.model_copy(update={"paths": {**game.paths, **files}})


def game_files(game: str) -> GameFiles:
    """Return a game.yaml and the files that it names, but never the ROM, which is not uploaded."""
    path = game_path(game, relative_to=Path())
    if path is None:
        return GameFiles()
    if path.is_dir():
        path /= "game.yaml"
    definition = load_yaml_model(path, GameDefinition, error=GameFileError)
    named: list[Path | None] = [path for _, path in definition.state_files()]
    named += [definition.symbols, definition.place_offsets]
    named += definition.offset_files_of_parts().values()
    if definition.reward is not None:
        named.append(Path(f"{definition.reward.partition(':')[0]}.py"))
    folder = path.parent
    # paths that stay within the game's folder, as they must to work on another machine
    inside = [f for f in named if f is not None and not f.is_absolute() and ".." not in f.parts]
    return GameFiles(
        game_file=f"{_FOLDER}/{path.name}",
        paths={f"{_FOLDER}/{path.name}": path.absolute()}
        | {
            f"{_FOLDER}/{file.as_posix()}": (folder / file).absolute()
            for file in inside
            if (folder / file).is_file()
        },
    )
