"""Listing of the runs at an address."""

from dataclasses import asdict, dataclass

from game_rl.storage.claim import read_claim
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.remote import read_manifest_of, stored_runs


@dataclass(frozen=True)
class StoredRun:
    """A run in storage.

    Attributes:
        run: id of the run.
        checkpoints: timesteps of the stored checkpoints, ascending.
        newest_saved: when the newest checkpoint was written, in UTC.
        newest_bytes: bytes of all files that a fetch of that checkpoint brings.
        writer_host: machine that wrote last, or None if there is no claim.
        is_active: whether the claim says that this writer has not ended.
    """

    run: str
    game: str
    checkpoints: tuple[int, ...]
    newest_saved: str
    newest_bytes: int
    writer_host: str | None
    is_active: bool

    def to_json(self) -> dict[str, object]:
        return {"kind": "run"} | asdict(self)


def list_runs(store: ObjectStore) -> list[StoredRun]:
    """Return all runs at an address, ordered by id."""
    return [_stored_run(store, run, found) for run, found in stored_runs(store).items()]


def _stored_run(store: ObjectStore, run: str, found: list[int]) -> StoredRun:
    manifest, claim = read_manifest_of(store, run, found[-1]), read_claim(store, run)
    return StoredRun(
        run=run,
        game=str(manifest.config.get("game")),
        checkpoints=tuple(found),
        newest_saved=f"{manifest.saved:%Y-%m-%d %H:%M:%S}",
        newest_bytes=manifest.n_bytes,
        writer_host=None if claim is None else claim.host,
        is_active=claim is not None and claim.is_active,
    )
