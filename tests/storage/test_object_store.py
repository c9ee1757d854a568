"""What every storage promises, an S3 server and a disk alike: they behave like a dict of bytes."""

from collections.abc import Iterator

import pytest

from game_rl.errors import UsageError
from game_rl.storage.faults import StoreFault
from game_rl.storage.object_store import PART_BYTES, ObjectStore
from tests.file_names import is_possible

UMLAUT = "ü" if is_possible("ü") else "u"


@pytest.fixture(params=["disk", "s3"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    address = str(request.getfixturevalue(f"{request.param}_address"))
    return ObjectStore.below(address, f"a folder/{UMLAUT}nd another")


def content(store: ObjectStore) -> dict[str, bytes | None]:
    return {stored.name: store.get(stored.name) for stored in store.list("")}


def test_objects_are_those_of_a_dict_after_the_same_changes(store: ObjectStore) -> None:
    expected: dict[str, bytes | None] = {}
    for name, value in [
        ("a", b"1"),
        ("b/c", b"2"),
        ("b/d/e", b""),
        ("a", b"again"),
        (f"{UMLAUT} x", b"3"),
    ]:
        store.put(name, value)
        expected[name] = value
        assert content(store) == expected
    assert {s.name: s.n_bytes for s in store.list("b")} == {"b/c": 1, "b/d/e": 0}
    assert list(store.folders("b")) == ["d"]
    for name in ("b/c", "never written"):
        store.delete(name)
        expected.pop(name, None)
        assert content(store) == expected
    store.clear()
    assert store.get("a") is None


def test_what_is_not_there_is_none_or_an_error(store: ObjectStore) -> None:
    assert store.find("x") is None
    assert store.get("x") is None
    assert store.get_versioned("x") is None
    with pytest.raises(FileNotFoundError):
        list(store.pieces("x"))


def test_a_new_object_does_not_replace_another(store: ObjectStore) -> None:
    store.put("a", b"first", is_new=True)
    with pytest.raises(FileExistsError):
        store.put("a", b"second", is_new=True)
    assert store.get("a") == b"first"


def test_an_object_of_several_parts_arrives_whole_or_not_at_all(store: ObjectStore) -> None:
    pieces = [bytes([n]) * (PART_BYTES // 2 + 1) for n in range(5)]
    store.put_pieces("large", lambda: iter(pieces))
    found = store.find("large")
    assert found is not None
    assert found.n_bytes == sum(map(len, pieces))
    assert b"".join(store.pieces("large")) == b"".join(pieces)

    def breaking() -> Iterator[bytes]:
        yield from pieces
        raise ValueError("the file has changed")

    with pytest.raises(ValueError, match="has changed"):
        store.put_pieces("broken", breaking)
    assert store.find("broken") is None


def test_an_object_that_has_changed_meanwhile_is_not_replaced(s3_address: str) -> None:
    store = ObjectStore(s3_address)
    store.put("claim", b"mine")
    found = store.get_versioned("claim")
    assert found is not None
    assert store.replace("claim", b"mine, later", known=found[1])
    assert not store.replace("claim", b"from before", known=found[1])
    assert store.get("claim") == b"mine, later"


def test_a_bucket_that_does_not_exist_is_missing(s3_address: str) -> None:
    with pytest.raises(StoreFault) as caught:
        ObjectStore(s3_address.replace("bucket", "no-such-bucket")).put("a", b"")
    assert caught.value.kind == "missing"


def test_an_address_without_a_bucket_is_refused() -> None:
    with pytest.raises(UsageError, match="bucket"):
        ObjectStore("s3:///folder")
