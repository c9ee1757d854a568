"""Rules for the structure of the code: allowed imports, and imports that one module owns."""

import ast
import functools
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "game_rl"

# From the bottom layer (first row) to the top. A module imports only from rows above its own. Names
# in the same row must not import each other.
LAYERS = (
    {"errors", "look", "seeds", "returns", "schedules", "statistics"},
    {"files"},
    {"events"},
    {"system"},
    {"config"},
    {"emulator"},
    {"games"},
    {"envs"},
    {"features"},
    {"game_check", "episodes", "live"},
    {"ram_search"},
    {"places"},
    {"explore"},
    {"pool", "curiosity"},
    {"play"},
    {"vec_env"},
    {"buffers"},
    {"lake", "played"},
    {"features/feature_table"},
    {"loggers"},
    {"algorithms"},
    {"curiosity/distillation"},
    {"checkpoints"},
    {"storage"},
    {"callbacks"},
    {"preflight"},
    {"playback"},
    {"training"},
    {"experiments/jobs"},
    {"measure"},
    {"interchange"},
    {"experiments/executors"},
    {"experiments"},
    {"viewer"},
    {"hub"},
    {"cli", "__main__"},
    {"api"},
)
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}

TORCH_FREE = (
    "config",
    "emulator",
    "games",
    "envs",
    "features",
    "game_check",
    "ram_search",
    "explore",
    "episodes",
    "live",
    "places",
    "play/",
    "pool",
    "curiosity/curiosity_feature.py",
    "played",
    "vec_env/worker.py",
    "loggers/log_files.py",
    "loggers/wandb_process.py",
    "loggers/wandb_settings.py",
    "training/wandb_log.py",
    "buffers/layout.py",
    "algorithms/sizes.py",
    "checkpoints/checkpoint_folder.py",
    "checkpoints/named.py",
    "checkpoints/run_game.py",
    "playback/checkpoint_survey.py",
    "experiments/jobs/job_files.py",
    "executors",
    "experiments",
    "storage",
    "viewer",
    "hub/agent_package.py",
    "hub/hub_client.py",
    "hub/pull.py",
    "hub/push.py",
)
MEMBERS = {"experiments/jobs/__main__.py", "experiments/jobs/member_jobs.py"}  # they train
HEAVY = {"torch", "stable_baselines3", "ray", "tensorboard", "torchvision"}
ONLY_IN = {
    "pyboy": {"emulator/pyboy_emulator.py"},
    "av": {"playback/clip.py"},
    "sdl2": {"play/game_window.py"},
    "huggingface_hub": {"hub/hub_client.py"},
    "obstore": {"storage/object_store.py"},
    "matplotlib": {"viewer/comparison_plot.py", "viewer/panel_figure.py"},
    "ray": {"experiments/executors/ray.py"},
    "sb3_contrib": {"algorithms/recurrent_policy.py"},
    "wandb": {"loggers/wandb_process.py"},
    "psutil": {"system/machine.py", "system/process_memory.py", "system/child_process.py"},
}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
ERROR_HANDLER = "game_rl.ascii_forms"  # of codecs, in system/output.py


def _layer(path: list[str]) -> str:
    """Return the layer of a module: a folder of a package may have one of its own."""
    inner = "/".join(path[:2])
    return inner if inner in RANKS else path[0]


@dataclass(frozen=True)
class Import:
    module: str
    line: int
    in_function: bool

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]


@dataclass(frozen=True)
class Source:
    name: str  # relative to the package, with slashes
    tree: ast.Module

    @property
    def layer(self) -> str:
        return _layer(self.name.removesuffix(".py").split("/"))

    @functools.cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(self._imports())

    def _imports(self) -> Iterator[Import]:
        inside = {
            id(node)
            for function in ast.walk(self.tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for node in ast.walk(function)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for module in _imported(node):
                    yield Import(module, node.lineno, id(node) in inside)


def _imported(node: ast.AST) -> list[str]:
    """Return the imported modules; `from game_rl import errors` imports game_rl.errors."""
    match node:
        case ast.Import(names=names):
            return [name.name for name in names]
        case ast.ImportFrom(module="game_rl", names=names):
            return [f"game_rl.{name.name}" for name in names]
        case ast.ImportFrom(module=str(module)):
            return [module]
    return []


def _source(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path.relative_to(PACKAGE).as_posix(), ast.parse(text))


@functools.cache
def sources() -> tuple[Source, ...]:
    return tuple(_source(path) for path in sorted(PACKAGE.rglob("*.py")))


def every_source(check: Callable[[Source], None]) -> Callable[[], None]:
    """Make one test of all files: thousands of small tests take longer to report than to run."""

    def test() -> None:
        for source in sources():
            check(source)

    return test


@functools.cache
def modules_needed(name: str) -> frozenset[str]:
    """Return our modules that are loaded with this file, found without running it."""
    by_module = {f"game_rl.{s.name.removesuffix('.py').replace('/', '.')}": s for s in sources()}
    needed: set[str] = set()
    todo = [f"game_rl.{name.removesuffix('.py').replace('/', '.')}"]
    while todo:
        module = todo.pop()
        if module in by_module and module not in needed:
            needed.add(module)
            todo += [i.module for i in by_module[module].imports if not i.in_function]
    return frozenset(by_module[module].name for module in needed)


def _rounded_shares(node: ast.AST) -> Iterator[int]:
    """Yield the lines on which Python's own formats make a percentage: `.0%`, `100 * x:.1f`."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            if re.search(r"\{[^{}]*:[^{}]*\.\d%\}", each.value):
                yield each.lineno
        elif isinstance(each, ast.FormattedValue) and each.format_spec is not None:
            form = ast.unparse(each.format_spec)
            is_times_100 = "100 *" in ast.unparse(each.value)
            if re.search(r"\.\d%'$", form) or (is_times_100 and re.search(r"\.\df'$", form)):
                yield each.lineno


def test_shares_become_words_in_one_place() -> None:
    """Elsewhere 1/8 would be 12 % in one sentence and 13 % in the next: see `percentage`."""
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line in _rounded_shares(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []
    for file in sorted((PACKAGE / "viewer" / "page").glob("*.js")):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"100 \*[^;]*\.toFixed|Math\.round\(100 \*", text), file.name


def test_the_layers_name_every_module_and_package() -> None:
    assert {source.layer for source in sources()} - {"__init__"} <= set(RANKS)


@every_source
def test_imports_point_down(source: Source) -> None:
    if source.layer == "__init__":
        return
    for imported in source.imports:
        if imported.package != "game_rl":
            continue
        layer = _layer(imported.module.split(".")[1:])
        is_below = RANKS[layer] < RANKS[source.layer]
        assert is_below or layer == source.layer or source.name == "__main__.py", (
            f"{source.name}:{imported.line} imports {imported.module}, which is not below it"
        )


# PyBoy and SDL, hundreds of modules: loaded by what plays, and not to answer a mistake
LATE = {"game_rl.emulator", "game_rl.emulator.pyboy_emulator"}


@every_source
def test_imports_are_at_the_top_of_the_file(source: Source) -> None:
    if source.layer == "cli" or source.name == "__main__.py":
        return  # only some commands need torch, and workers do not need the command line
    for imported in source.imports:
        is_late = imported.in_function and imported.module not in LATE
        assert not is_late, f"{source.name}:{imported.line} hides {imported.module}"


def test_the_command_line_imports_only_heavy_modules_inside_functions() -> None:
    """A module is heavy if it loads a package that every command does not load anyway.

    The main program itself is left out: it loads the module of one command alone.
    """
    always, names = _packages_loaded("cli/arguments.py"), {source.name for source in sources()}
    for source in (source for source in sources() if source.name != "cli/main.py"):
        for imported in source.imports if source.layer == "cli" else ():
            name = f"{imported.module.removeprefix('game_rl.').replace('.', '/')}.py"
            if imported.in_function and imported.module != "game_rl":
                loads = _packages_loaded(name) if name in names else {imported.package}
                is_light = not loads - always and source.name not in modules_needed(name)
                assert not is_light, f"{source.name}:{imported.line} {imported.module} is light"


@functools.cache
def _packages_loaded(name: str) -> frozenset[str]:
    """Return the packages of others that are loaded with this file."""
    needed = modules_needed(name)
    found = {
        i.package for s in sources() if s.name in needed for i in s.imports if not i.in_function
    }
    return frozenset(found - {"game_rl"} - sys.stdlib_module_names)


@every_source
def test_what_lives_in_one_place_is_imported_there_only(source: Source) -> None:
    for imported in source.imports:
        places = ONLY_IN.get(imported.package, {source.name})
        assert source.name in places, f"{source.name}:{imported.line} imports {imported.package}"


@every_source
def test_a_policy_with_a_memory_is_loaded_only_by_its_algorithm(source: Source) -> None:
    """`make_algorithm` loads both by their names, for a run with a memory."""
    if source.name.startswith("algorithms/recurrent_"):
        return
    assert "algorithms/recurrent_policy.py" not in modules_needed(source.name), source.name


# What only Linux or Unix has: modules, and names in `os`, `signal` and `socket`.
ONE_SYSTEM_MODULES = {"fcntl", "resource", "select", "pwd", "grp", "termios", "pty"}
ONE_SYSTEM_NAMES = re.compile(
    r"os\.(fork|memfd_create|pidfd_open|waitid|killpg|setsid|nice|getuid|geteuid|register_at_fork|"
    r"[gs]etpriority|sched_\w+|p(read|write)v?|kill)|socket\.(\w+_fds|AF_UNIX|SOCK_SEQPACKET)|"
    r"signal\.([gs]etitimer|alarm|pause|pidfd_send_signal|pthread_kill|"
    r"SIG(ALRM|KILL|HUP|CHLD|USR1|USR2))"
)
ONE_SYSTEM_PLACES = ("system/", "files/run_dir.py", "files/durable_files.py")


@every_source
def test_what_only_one_system_has_is_called_in_system(source: Source) -> None:
    if source.name.startswith(ONE_SYSTEM_PLACES):
        return
    for imported in source.imports:
        assert imported.module not in ONE_SYSTEM_MODULES, f"{source.name}:{imported.line}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            assert not ONE_SYSTEM_NAMES.fullmatch(name), f"{source.name}:{node.lineno} {name}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not node.value.startswith("/proc/"), f"{source.name}:{node.lineno}"


@every_source
def test_what_a_worker_may_load_imports_no_torch(source: Source) -> None:
    if not source.name.startswith(TORCH_FREE) or source.name in MEMBERS:
        return
    for name in modules_needed(source.name):
        needed = next(other for other in sources() if other.name == name)
        heavy = {i.package for i in needed.imports} & HEAVY
        if source.name in ONLY_IN["ray"]:  # it is only loaded if the config names it
            heavy -= {"ray"}
        assert not heavy, f"{source.name} loads {name}, which imports {heavy}"


@every_source
def test_only_the_command_line_prints(source: Source) -> None:
    if source.layer == "cli":
        return
    calls = (node.func for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    prints = any(isinstance(call, ast.Name) and call.id == "print" for call in calls)
    assert not prints, f"{source.name} prints"


@every_source
def test_files_are_named_by_nouns(source: Source) -> None:
    words = set(itertools.chain(*(part.split("_") for part in source.name[:-3].split("/"))))
    assert not words & VAGUE_NAMES, source.name


def _definitions() -> dict[str, list[str]]:
    """Return the files that define each public class or function."""
    found: dict[str, list[str]] = {}
    for source in sources():
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(source.name)
    return found


def test_no_two_files_have_one_name() -> None:
    names = [Path(source.name).name for source in sources()]
    own = [name for name in names if name not in ("__init__.py", "__main__.py")]
    assert len(own) == len(set(own)), sorted(name for name in set(own) if own.count(name) > 1)


def test_no_two_public_classes_or_functions_have_one_name() -> None:
    """The functions of the public API may have the names of those that they call."""
    found = {name: [f for f in files if f != "api.py"] for name, files in _definitions().items()}
    twice = {name for name, files in found.items() if len(files) > 1} - {"main"}
    assert not twice


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports inside functions count; those for type checkers alone do not."""
    modules = {f"game_rl.{s.name.removesuffix('.py').replace('/', '.')}": s for s in sources()}
    left = {name: _needed_when_run(source) & set(modules) for name, source in modules.items()}
    while free := {name for name, needed in left.items() if not needed & set(left)}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert not left, f"in a circle, or above one: {sorted(left)}"


def _needed_when_run(source: Source) -> set[str]:
    typing_only = {
        id(node)
        for block in ast.walk(source.tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    needed = set()
    for node in ast.walk(source.tree):
        if id(node) in typing_only:
            continue
        needed |= set(_imported(node))
        if isinstance(node, ast.ImportFrom) and node.module:  # `from game_rl.lake import segment`
            needed |= {f"{node.module}.{name.name}" for name in node.names}
    return needed - {f"game_rl.{source.name.removesuffix('.py').replace('/', '.')}"}


@pytest.mark.slow
def test_every_module_that_a_string_names_exists() -> None:
    """A wrong name in a string is found by nobody else: a process that it starts dies quietly."""
    folders = (PACKAGE, ROOT / "tests", ROOT / "benchmarks")
    missing = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.value}"
        for folder in folders
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"game_rl(\.\w+)+(:\w+)?", node.value) and not _exists(node.value)
    ]
    assert [name for name in missing if not name.endswith(ERROR_HANDLER)] == []


def _exists(name: str) -> bool:
    """Whether it is a module or package of ours, or a path of attributes in a module."""
    *parts, last = name.partition(":")[0].split(".")
    if ROOT.joinpath(*parts, last).is_dir():
        return True
    for count in range(len(parts) + 1, 1, -1):
        module = ROOT.joinpath(*[*parts, last][:count])
        file = next(filter(Path.is_file, map(module.with_suffix, (".py", ".pyx"))), None)
        if file is not None:
            attributes = [*[*parts, last][count:], *filter(None, [name.partition(":")[2]])]
            text = file.read_text(encoding="utf-8")
            return not attributes or re.search(rf"\b{attributes[0]}\b", text) is not None
    return False


def test_text_is_utf_8_on_every_machine() -> None:
    """Without `encoding`, a file and the output of a child have that of the locale."""
    folders = (PACKAGE, ROOT / "tests", ROOT / "benchmarks")
    files = (file for folder in folders for file in folder.rglob("*.py"))
    texts = ((file, file.read_text(encoding="utf-8")) for file in files)
    without = [
        f"{file.relative_to(ROOT)}:{call.lineno}"
        for file, text in texts
        if any(word in text for word in ("read_text(", "write_text(", "open(", "text=True"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and _takes_text(call)
        if "encoding" not in {keyword.arg for keyword in call.keywords}
    ]
    assert not without


def _takes_text(call: ast.Call) -> bool:
    match call.func, call.args:
        case (ast.Attribute(attr="read_text"), []) | (ast.Attribute(attr="write_text"), [_]):
            return True
        case (
            (ast.Attribute(attr="open"), [ast.Constant(value="r" | "w" | "a" | "x")])
            | (ast.Attribute(attr="fdopen") | ast.Name(id="open"), [_])
            | (ast.Attribute(attr="fdopen") | ast.Name(id="open"), [_, ast.Constant("r" | "w")])
        ):
            return True
    is_child = ast.unparse(call.func).removeprefix("subprocess.") in ("run", "Popen")
    return is_child and "text" in {keyword.arg for keyword in call.keywords}


@every_source
def test_each_assignment_has_one_target(source: Source) -> None:
    """Swaps and parallel updates excepted, whose values name a target."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            tuples = [target for target in node.targets if isinstance(target, ast.Tuple)]
            targets = {ast.unparse(each) for target in tuples for each in target.elts}
            values = (each for each in ast.walk(node.value) if isinstance(each, ast.expr))
            named = {ast.unparse(each) for each in values}
            assert not tuples or targets & named, f"{source.name}:{node.lineno}"


@every_source
def test_no_loop_has_a_condition_for_what_it_goes_over(source: Source) -> None:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For | ast.comprehension):
            assert not isinstance(node.iter, ast.IfExp), f"{source.name}:{node.iter.lineno}"


@every_source
def test_no_module_gives_a_constant_two_values(source: Source) -> None:
    """The later one would count everywhere, as after two files were joined."""
    constants = [
        target.id
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    ]
    assert len(constants) == len(set(constants)), source.name


def test_package_files_are_empty() -> None:
    paths = [*PACKAGE.glob("*/**/__init__.py"), *(ROOT / "tests").rglob("__init__.py")]
    written = [path for path in paths if path.read_text(encoding="utf-8")]
    assert written == [PACKAGE / "events" / "__init__.py"]  # public: game_rl.events.Evaluated


def test_importing_the_package_registers_its_games_and_loads_no_more_of_it() -> None:
    code = "import sys, game_rl; print(*sorted(m for m in sys.modules if m.startswith('game_rl.')))"
    assert run_python(code) == "game_rl.envs game_rl.envs.registration"


def test_train_py_is_short_and_imports_nothing_heavy_at_the_top() -> None:
    text = (ROOT / "train.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 12
    source = Source("train.py", ast.parse(text))
    assert not {i.package for i in source.imports if not i.in_function} & HEAVY


@pytest.mark.parametrize("module", ["train", "game_rl.__main__"])
def test_a_worker_that_imports_the_main_module_again_stays_without_the_command_line(
    module: str,
) -> None:
    code = f"import sys, {module}; print([m for m in sys.modules if m.startswith('game_rl.cli')])"
    assert run_python(code) == "[]"


WITHOUT_TORCH = (
    "game_rl.vec_env.worker",
    "game_rl.envs.make_env",
    "game_rl.config.loader",
    "game_rl.cli.main",
    "game_rl.experiments.train_experiment",
    "train",
)


@pytest.mark.slow
def test_a_fresh_interpreter_does_not_load_torch_with_any_of_these() -> None:
    """One after the other in one interpreter, so the first wrong one is named."""
    code = f"""
import importlib, sys
for module in {WITHOUT_TORCH!r}:
    importlib.import_module(module)
    found = sorted(set(sys.modules) & {HEAVY!r})
    if found:
        print(module, "loads", found)
        break
"""
    assert run_python(code) == ""


@pytest.mark.slow
def test_a_worker_that_plays_a_game_has_not_loaded_torch() -> None:
    code = f"""
import sys
import game_rl.vec_env.worker
from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env
from game_rl.games.definition import load_game
env = make_env(EnvConfig(), load_game("duel"))
env.reset(seed=0)
env.step(0)
env.close()
print(sorted(set(sys.modules) & {HEAVY!r}))
"""
    assert run_python(code) == "[]"


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout.strip()
