"""A user's own Python class, named `module:Class`: found, imported, and its errors located.

One rule holds for all of them. A module is looked up beside the file that names it, then in the
current folder, then among what is installed. One that is found in a folder is loaded from its file
under a name of its own, so it takes the place of no other module, installed or not; what it imports
is looked up in the same folders after what is installed.

A config or a game.yaml may come from a stranger, so finding a class runs no code of it.
"""

import ast
import hashlib
import importlib.util
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from game_rl.config.schema_guide import closest
from game_rl.errors import GameRLError

OWN_MODULE = "game_rl_own_"
"""What the names of modules start with that are files of the user's and cannot be imported."""

_PACKAGE = Path(__file__).parents[1]
_OURS = ("config", "files", "games", "envs", "training/extensions")  # they call the user's code
_NOT_THEIRS = (
    _PACKAGE,
    *(_PACKAGE / folder for folder in _OURS),
    Path(importlib.__file__).parent,
    Path(),  # of <frozen ...>
)
_SHOWN_CLASSES = 12
_SHOWN_CHARACTERS = 500  # of an error message of the user's code


def places_beside(folder: Path) -> tuple[Path, ...]:
    """Return the folders where a module is looked up that a file in `folder` names."""
    here = Path.cwd()
    beside = here / folder
    return (beside,) if beside == here else (beside, here)


def class_source(reference: str, places: Sequence[Path], *, error: type[GameRLError]) -> str:
    """Return the file or installed module that `module:Class` names, without running its code.

    Args:
        places: folders where the module is looked up before what is installed.

    Raises:
        error: there is no such module, or the file is not valid Python or lacks the class.
    """
    module_name, _, class_name = reference.partition(":")
    path = _first_file(module_name, places)
    if path is not None:
        _check_source(path, class_name, error)
        return str(path)
    # only the first part of a dotted name, as finding the rest would import the first part
    with _importable(places):
        if importlib.util.find_spec(module_name.partition(".")[0]) is None:
            raise _no_module(module_name, places, error)
    return f"the module {module_name}"


def module_file(module: str, folder: Path) -> Path:
    """Return the file in `folder` that would be the module."""
    return folder.joinpath(*module.split(".")).with_suffix(".py")


def load_class(
    reference: str, places: Sequence[Path], *, error: type[GameRLError]
) -> tuple[type, ModuleType]:
    """Import `module:Class`; `module` is a .py in one of `places`, or importable.

    Raises:
        error: there is no such module or class, or importing it failed.
    """
    module_name, _, class_name = reference.partition(":")
    path = _first_file(module_name, places)
    try:
        with _importable(places):
            module = importlib.import_module(module_name) if path is None else _load_file(path)
    except ModuleNotFoundError as missing:
        if missing.name == module_name:
            raise _no_module(module_name, places, error) from None
        raise error(f"{module_name} needs the module {missing.name}; install it") from missing
    except (Exception, SystemExit) as fault:
        place = line_of(fault, places[0] if path is None else path.parent)
        raise error(
            f"importing {module_name} failed with {described(fault)}{place}; fix it"
        ) from fault
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [n for n, v in vars(module).items() if isinstance(v, type)]
        raise _no_class(class_name, str(module.__file__), classes, error)
    return found, module


def described(error: BaseException) -> str:
    """Return the type and the message of an error of the user's code."""
    return f"{type(error).__name__}: {error}"[:_SHOWN_CHARACTERS]


def line_of(error: BaseException, folder: Path) -> str:
    """Return the line of the user's code that led to the error, in words; "" if there is none.

    It is the innermost in a file of the folder, or else the one that we called.
    """
    frames = traceback.extract_tb(error.__traceback__)
    called = [f for f in frames if Path(f.filename).parent not in _NOT_THEIRS]
    theirs = [f for f in called if _is_own_file(Path(f.filename), folder)] or called[:1]
    if not theirs:
        return ""
    return f" in {theirs[-1].filename}, line {theirs[-1].lineno}: `{theirs[-1].line}`"


def _first_file(module: str, places: Sequence[Path]) -> Path | None:
    files = (module_file(module, place) for place in places)
    return next((file for file in files if file.is_file()), None)


@contextmanager
def _importable(places: Sequence[Path]) -> Iterator[None]:
    """Let modules in the folders be imported, after installed ones."""
    added = [str(place) for place in places if str(place) not in sys.path]
    sys.path += added
    try:
        yield
    finally:
        for place in added:
            sys.path.remove(place)


def _check_source(path: Path, class_name: str, fault: type[GameRLError]) -> None:
    """Check a file as text; other mistakes only show when it runs."""
    try:
        with warnings.catch_warnings(action="ignore"):
            nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise fault(f"{path} cannot be read: {described(error)}; fix it") from None
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    assigned = {node.id for node in nodes if isinstance(node, ast.Name)}
    if not {class_name, "*"} & {*classes, *imported, *assigned}:
        raise _no_class(class_name, str(path), classes, fault)


def _no_module(name: str, places: Sequence[Path], fault: type[GameRLError]) -> GameRLError:
    files = [module_file(name, place) for place in places]
    others = {other.stem for file in files for other in file.parent.glob("*.py")}
    near = closest(name, sorted(others))
    guess = f"; did you mean {near}?" if near else ""
    sought = " nor ".join(map(str, files))
    return fault(f"there is no module {name}: neither {sought} nor an installed one{guess}")


def _no_class(
    name: str, source: str, classes: Iterable[str], fault: type[GameRLError]
) -> GameRLError:
    public = [other for other in classes if other[0] != "_"]
    shown = ", ".join(public[:_SHOWN_CLASSES]) or "none"
    more = ", …" if len(public) > _SHOWN_CLASSES else ""
    near = closest(name, public)
    way_out = f"did you mean {near}?" if near else "name one of them"
    return fault(f"{source} has no class {name}; it has: {shown}{more}; {way_out}")


def _is_own_file(path: Path, folder: Path) -> bool:
    """Whether the file is in the folder, and not in one of packages that happens to be there."""
    if not path.is_relative_to(folder):
        return False
    return "site-packages" not in path.relative_to(folder).parts


def _load_file(path: Path) -> ModuleType:
    """Import a file under a unique name, so that two games may both have a `reward.py`."""
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    name = f"{OWN_MODULE}{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
