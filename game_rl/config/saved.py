"""Base of the strict models of saved state: plain data, validated when it is read."""

import base64
import binascii
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer


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
