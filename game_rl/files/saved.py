"""What is read from disk: models that describe themselves, the frozen one of what is read back,
files of it, JSON with a checksum, sha256.
"""

import ast
import base64
import binascii
import functools
import hashlib
import inspect
import json
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NoReturn, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationError,
)
from pydantic_core import CoreSchema

from game_rl.errors import GameRLError, LakeError


class DescribedModel(BaseModel):
    """A model whose JSON Schema describes each field with the text that stands below it.

    Pydantic's `use_attribute_docstrings` gives the same, but reads the source where the class is
    made: 0.2 s in each process. Here it is read when the schema is asked for.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        found = handler(core_schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, text in field_texts(cls):
            own = properties.get(cls.model_fields[name].alias or name, {})
            if handler.resolve_ref_schema(own).get("description") != text:
                own["description"] = text
        return found


def field_texts(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield each field that has a text, with the text of the class that defines it."""
    fields = set(model.model_fields)
    for each in model.__mro__:
        own = fields & inspect.get_annotations(each).keys()
        fields -= own
        lines = _class_bodies(each.__module__).get(each.__qualname__, []) if own else []
        for field, text in pairwise(lines):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ) if name in own:
                    yield name, inspect.cleandoc(words)


@functools.cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """Return what stands in each class of a module; nothing where there is no source."""
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:
        return {}
    return {
        each.name: each.body for each in ast.parse(source).body if isinstance(each, ast.ClassDef)
    }


def _decode(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"is not base64: {error}") from None


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


Blob = Annotated[
    bytes, BeforeValidator(_decode), PlainSerializer(_encode, return_type=str, when_used="json")
]
"""Bytes, written as base64 in JSON."""


class Saved(BaseModel):
    """A frozen model that refuses unknown keys. JSON gives back what was saved, bit for bit."""

    model_config = ConfigDict(frozen=True, extra="forbid")  # no attribute docstrings: 1 ms a model


Natural = Annotated[int, Field(ge=0)]
NaturalIfAny = Annotated[int, Field(ge=0, exclude_if=lambda number: not number)]
"""A natural number that is left out where it is 0, as by versions that did not have it."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Kind = TypeVar("_Kind", bound=BaseModel)


Content = TypeVar("Content", bound=Saved, covariant=True)


@dataclass(frozen=True)
class CheckpointFile(Generic[Content]):
    """A JSON file that a feature adds to each checkpoint of its run.

    Attributes:
        name: its name, which stays as it is: older checkpoints have it.
        words: what is in it, for people.
        model: form of its content.
        holds_replay: whether it stands for the replay.
        fork: whether a fork takes it over: unless its counters begin anew, or never, because the
            feature writes the fork's own.
    """

    name: str
    words: str
    model: type[Content]
    fork: Literal["unless its counters are new", "never"]
    holds_replay: bool = False


def first_problem(error: ValidationError) -> str:
    """Describe the first problem and where it is, as in `files.0.path: Field required`."""
    first = error.errors(include_url=False, include_input=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def parse_saved(
    kind: type[_Kind],
    content: str | bytes,
    source: object,
    *,
    error: type[GameRLError],
    fault: str = "cannot be read",
    way_out: str = "restore it from a copy",
) -> _Kind:
    """Parse JSON that was saved from a model of this kind.

    Args:
        source: the file or address that `content` is from.
        error: raised if the content is no such model, with `source`, `fault`, the first problem
            and `way_out`.
    """
    try:
        return kind.model_validate_json(content)
    except ValidationError as problem:
        raise error(f"{source} {fault}: {first_problem(problem)}; {way_out}") from None


def read_saved(
    kind: type[_Kind],
    path: Path,
    *,
    error: type[GameRLError],
    fault: str = "cannot be read",
    way_out: str = "restore it from a copy",
) -> _Kind | None:
    """Read a file as `parse_saved` does; None if there is no such file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return parse_saved(kind, content, path, error=error, fault=fault, way_out=way_out)


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - JSON
    """Parse JSON that another version, or anybody, may have written.

    Raises:
        ValueError: it is no JSON, or it is nested too deeply, or a number in it is not finite,
            has more than a hundred digits, or is whole and takes more than 64 bits.
    """
    try:
        return json.loads(
            text, parse_int=_bounded, parse_float=_finite, parse_constant=_no_constant
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


_LARGEST_FLOAT = 1e100  # far beyond float32; sums and units of it stay finite


def _bounded(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError("a number takes more than 64 bits")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not abs(number) < _LARGEST_FLOAT:
        raise ValueError(f"{digits} is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_document(kind: str, values: dict[str, Any]) -> str:
    """Return a JSON object with the values, their kind and a crc32."""
    return json.dumps({"kind": kind, "crc32": _crc(kind, values), **values})


def document_kind(text: str) -> str | None:
    """Return the kind that the document names, without checking it; None if it names none."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kind = values.get("kind") if isinstance(values, dict) else None
    return kind if isinstance(kind, str) else None


def from_document(text: str, kind: str, *, source: object) -> dict[str, Any]:
    """Return the values that `to_document` was given.

    Raises:
        LakeError: the text, which is from `source`, is not a document of this kind or is damaged.
    """
    try:
        values = json.loads(text)
        found = values.pop("kind"), values.pop("crc32")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise LakeError(f"{source}: not a {kind} ({error})") from None
    if found[0] != kind:
        raise LakeError(f"{source} is a {found[0]}, but this version of game_rl reads a {kind}")
    if found[1] != _crc(kind, values):
        raise LakeError(f"{source}: its checksum is wrong; restore it from a copy")
    return dict(values)


def _crc(kind: str, values: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps([kind, values], sort_keys=True).encode())
