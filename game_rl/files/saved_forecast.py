"""What a run's `preflight.json` and `footprint.json` say, read back.

Whatever is missing, damaged, or of a version that wrote it otherwise, is left out.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from game_rl.files.saved import parse_json

Resource = Literal["disk", "ram"]

STANDING_PARTS = ("Python, torch, SB3", "forkserver")
"""Parts of the forecast that a process has from its start, and which cannot grow."""


class _Lenient(BaseModel):
    """A model whose fields have their defaults where they cannot be read."""

    model_config = ConfigDict(frozen=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _default(
        cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:  # noqa: ANN401 - of the field's type
        try:
            return handler(value)
        except ValidationError:
            assert info.field_name is not None
            return cls.model_fields[info.field_name].default


class ForecastPart(BaseModel):
    """A line of the forecast of memory or disk."""

    name: str
    bytes: int


class ForecastMemory(_Lenient):
    """Memory of the machine or of a GPU."""

    predicted_peak_bytes: int | None = None
    limit_bytes: int | None = None
    parts: tuple[ForecastPart, ...] = ()


class ForecastRow(BaseModel):
    """Bytes of the run directory at a timestep, without its Lake."""

    at: int
    checkpoints: int
    others: int

    @property
    def bytes(self) -> int:
        return self.checkpoints + self.others


class ForecastRows(_Lenient):
    """The disk over the timesteps of the run."""

    rows: tuple[ForecastRow, ...] = ()


class ForecastDisk(_Lenient):
    """The disk at the run's end."""

    predicted_total_bytes: int | None = None
    parts: tuple[ForecastPart, ...] = ()
    plan: ForecastRows = ForecastRows()

    @property
    def lake_bytes(self) -> int | None:
        """Bytes of the Lake; None if none is forecast."""
        sizes = [part.bytes for part in self.parts if part.name.startswith("Lake")]
        return sum(sizes) if sizes else None


class ForecastGrowth(BaseModel):
    """What the timesteps on disk take; `on_disk` is None if their compression was not measured."""

    packed: int
    on_disk: int | None


class ForecastFinding(_Lenient):
    """Something that the preflight found wrong."""

    key: str = ""
    message: str = ""


class SavedForecast(_Lenient):
    """The content of `preflight.json`, as far as a run or a person looks at it later."""

    verdict: str = "not recorded"
    ram: ForecastMemory = ForecastMemory()
    vram: ForecastMemory = ForecastMemory()
    disk: ForecastDisk = ForecastDisk()
    growth: tuple[ForecastGrowth, ...] = ()
    findings: tuple[ForecastFinding, ...] = ()

    def largest_growing_part(self, resource: Resource) -> ForecastPart | None:
        """Return the largest part that grows while the run trains; None if there is none.

        A Lake whose compression was not measured counts with the size of its packed frames.
        """
        forecast = self.ram if resource == "ram" else self.disk
        parts = {part.name: part.bytes for part in forecast.parts}
        if resource == "disk" and self.growth:
            last = self.growth[-1]
            parts["Lake"] = last.packed if last.on_disk is None else last.on_disk
        growing = [(size, name) for name, size in parts.items() if name not in STANDING_PARTS]
        if not growing:
            return None
        size, name = max(growing, key=lambda part: part[0])
        return ForecastPart(name=name, bytes=size)


class MeasuredResource(_Lenient):
    """A forecast and its measurement; `error` is predicted / measured - 1."""

    predicted: int | None = None
    measured: int | None = None
    error: float | None = None


def read_forecast(path: Path) -> SavedForecast | None:
    """Read a `preflight.json`; None if it is missing, damaged or empty."""
    found = _object(path)
    return SavedForecast.model_validate(found) if found else None


def read_footprint(path: Path) -> dict[str, MeasuredResource]:
    """Read a `footprint.json` by its keys; empty if it is missing or damaged."""
    return {
        key: MeasuredResource.model_validate(value)
        for key, value in _object(path).items()
        if isinstance(value, dict)
    }


def measured_ram_peak_bytes(footprint: Path) -> int:
    """Return the peak that a footprint.json has; 0 if there is no such file, or it is damaged."""
    found = read_footprint(footprint).get("ram_peak_bytes")
    return 0 if found is None else found.measured or 0


def _object(path: Path) -> dict[str, Any]:
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
