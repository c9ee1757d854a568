"""Small JSON files with a checksum."""

import json
import zlib
from typing import Any

from game_rl.errors import LakeError


def to_document(kind: str, values: dict[str, Any]) -> str:
    """One JSON object: the values, what they describe and their crc32."""
    return json.dumps({"kind": kind, "crc32": _crc(kind, values), **values})


def kind_of(text: str) -> str | None:
    """What the document says that it describes; not checked."""
    try:
        values = json.loads(text)
    except ValueError:
        return None
    kind = values.get("kind") if isinstance(values, dict) else None
    return kind if isinstance(kind, str) else None


def from_document(text: str, kind: str, *, source: object) -> dict[str, Any]:
    """The values that `to_document` was given.

    Raises:
        LakeError: `source`, which the text is from, is something else or was changed.
    """
    try:
        values = json.loads(text)
        found = values.pop("kind"), values.pop("crc32")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LakeError(f"{source}: not a {kind} ({error})") from None
    if found[0] != kind:
        raise LakeError(f"{source}: a {found[0]}, but this version reads a {kind}")
    if found[1] != _crc(kind, values):
        raise LakeError(f"{source}: its checksum is wrong; copy it from where it was saved")
    return dict(values)


def _crc(kind: str, values: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps([kind, values], sort_keys=True).encode())
