"""The way through the code from `train.resume` to the first vec step.

    python -m benchmarks.way [COMMIT]

It makes a small run, resumes it, and follows every call until the first vec step. It lists the
modules of the package in the order of their first call, and counts the calls from a lower layer
into a higher one (layers: `tests/test_layers.py`). Such a call turns the way back. Most are methods
that a class overrides; hooks that another library calls, such as SB3's callbacks, do not count.
With a commit, the same is done with its code, and both are compared. Counts do not depend on the
machine.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
_CONFIG = """\
game: duel
total_timesteps: 1_024
run_dir: {run_dir}
env: {{n_envs: 2}}
algorithm: {{name: {algorithm}}}
evaluation: {{every_timesteps: 512, episodes: 2, final_episodes: 2}}
checkpoints: {{every_timesteps: 512}}
recording: {{episodes: 0}}
"""
_ALGORITHMS = {
    "ppo": "ppo, n_steps: 128, batch_size: 64",
    "pqn": "pqn, n_steps: 128, batch_size: 64",
    "dqn": "dqn, learning_starts: 128, replay: {capacity: 1_000}",
}


class _AtTheEndError(BaseException):
    """The first vec step begins."""


@dataclass(frozen=True)
class Way:
    """The modules in the order of their first call, and the calls that go up."""

    modules: list[str]
    up: Counter[str]


def follow(run_dir: Path, root: Path) -> None:
    """Resume the run with the code at `root`, and print its way as JSON."""
    from game_rl.training import train  # the code is found by PYTHONPATH

    command = getattr(train, "TrainCommand", None) or train.Command  # type: ignore[attr-defined]
    ranks = _ranks(root)
    package = f"{root / 'game_rl'}{os.sep}"
    modules: dict[str, None] = {}
    up: Counter[str] = Counter()

    def on_call(frame: FrameType, event: str, _argument: Any) -> None:  # noqa: ANN401
        if event != "call" or not frame.f_code.co_filename.startswith(package):
            return
        name = frame.f_code.co_name
        module = frame.f_code.co_filename.removeprefix(package)
        if name == "<module>":
            return
        if module == "vec_env/vec_env.py" and name == "step_async":
            sys.setprofile(None)
            raise _AtTheEndError
        modules.setdefault(module)
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename.startswith(package):
            above = caller.f_code.co_filename.removeprefix(package)
            if ranks[_layer(above)] < ranks[_layer(module)]:
                up[f"{above}:{caller.f_code.co_name} -> {module}:{name}"] += 1

    stop = command.__dataclass_fields__["stop"].type()  # its module has moved
    sys.setprofile(on_call)
    try:
        train.resume(run_dir, command(force=True, stop=stop))
    except _AtTheEndError:
        pass
    finally:
        sys.setprofile(None)
    print(json.dumps({"modules": list(modules), "up": up}))


def _layer(module: str) -> str:
    return module.partition("/")[0].removesuffix(".py")


def _ranks(root: Path) -> dict[str, int]:
    tree = ast.parse((root / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    (layers,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    )
    return {name: rank for rank, names in enumerate(layers) for name in names} | {"__init__": 0}


def way_of(code: Path, algorithm: str) -> Way:
    """Make a run with the code at `code`, resume it, and return the way."""
    environment = os.environ | {"PYTHONPATH": str(code)}
    with tempfile.TemporaryDirectory() as folder:
        config, run_dir = Path(folder, "run.yaml"), Path(folder, "run")
        text = _CONFIG.format(run_dir=run_dir, algorithm=_ALGORITHMS[algorithm])
        config.write_text(text, encoding="utf-8")
        train = ("-m", "game_rl", "train", "--config", str(config), "--until", "512", "--force")
        _python(*train, environment=environment, cwd=code)
        script = str(Path(__file__).resolve())
        printed = _python(
            "-P",
            script,
            "--follow",
            str(run_dir),
            str(code),
            environment=environment,
            cwd=Path(folder),
        )
    found = json.loads(printed.splitlines()[-1])
    return Way(found["modules"], Counter(found["up"]))


def _python(*arguments: str, environment: dict[str, str], cwd: Path) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if ended.returncode:
        sys.exit(f"{' '.join(arguments)}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


@contextmanager
def code_of(commit: str) -> Iterator[Path]:
    """Yield a folder with the code of a commit, which is gone after the block."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "code")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), commit], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def _show(way: Way) -> None:
    print(f"\n{len(way.modules)} modules, in the order of their first call:")
    for module in way.modules:
        print(f"  {module}")
    print(f"\n{len(way.up)} ways from a lower layer into a higher one, {way.up.total()} calls:")
    for call, count in sorted(way.up.items()):
        print(f"  {count:>4} x {call}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", help="a commit to compare with")
    parser.add_argument("--algorithm", choices=list(_ALGORITHMS), default="ppo")
    arguments = parser.parse_args()
    way = way_of(ROOT, arguments.algorithm)
    _show(way)
    if arguments.commit:
        with code_of(arguments.commit) as code:
            before = way_of(code, arguments.algorithm)
        print(f"\nat {arguments.commit}:")
        _show(before)
        print(
            f"\nbefore and now: {len(before.modules)} and {len(way.modules)} modules, "
            f"{len(before.up)} and {len(way.up)} ways up, "
            f"{before.up.total()} and {way.up.total()} calls up"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--follow"]:
        follow(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
