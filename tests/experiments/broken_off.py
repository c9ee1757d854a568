"""Experiments that die at a chosen moment, and what they must come to all the same."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord, read_record


def account_of(folder: ExperimentDir) -> dict[str, str]:
    """Whatever must be the same, byte for byte but for the folder's name."""
    files = [*folder.root.glob("generations/*/record.json"), folder.champion_record, folder.state]
    texts = {str(p.relative_to(folder.root)): p.read_text(encoding="utf-8") for p in files}
    weights = folder.root.rglob("policy.safetensors")
    texts |= {
        str(p.relative_to(folder.root)): p.read_text(encoding="utf-8")
        for p in weights
        if "superseded" not in p.parts
    }
    return {name: text.replace(str(folder.root), "") for name, text in texts.items()}


def record(folder: ExperimentDir, generation: int) -> GenerationRecord:
    found = read_record(folder.generation(generation).record, GenerationRecord)
    assert found is not None
    return found


class Killed(BaseException):
    """Of the process."""


@contextmanager
def killed_at(operation: int) -> Iterator[None]:
    """Inside, the process dies at the n-th change of a name on the disk, before or after it."""
    count, real = 0, {name: getattr(os, name) for name in ("rename", "replace", "link", "unlink")}

    def wrapped(name: str) -> Any:
        def act(*args: Any, **keywords: Any) -> Any:
            nonlocal count
            count += 1
            if 2 * count - 1 >= operation:
                raise Killed
            done = real[name](*args, **keywords)
            if 2 * count >= operation:
                raise Killed
            return done

        return act

    for name in real:
        setattr(os, name, wrapped(name))
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)
