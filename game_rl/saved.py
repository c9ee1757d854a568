"""The frozen model for what is read back from disk, and JSON documents with a checksum."""

import base64
import binascii
import json
import zlib
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from game_rl.errors import LakeError


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

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def to_document(kind: str, values: dict[str, Any]) -> str:
    """Return a JSON object with the values, their kind and a crc32."""
    return json.dumps({"kind": kind, "crc32": _crc(kind, values), **values})


def document_kind(text: str) -> str | None:
    """Return the kind that the document names, without checking it; None if it names none."""
    try:
        values = json.loads(text)
    except ValueError:
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
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LakeError(f"{source}: not a {kind} ({error})") from None
    if found[0] != kind:
        raise LakeError(f"{source} is a {found[0]}, but this version of game_rl reads a {kind}")
    if found[1] != _crc(kind, values):
        raise LakeError(f"{source}: its checksum is wrong; restore it from a copy")
    return dict(values)


def _crc(kind: str, values: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps([kind, values], sort_keys=True).encode())
