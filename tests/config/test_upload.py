from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.config.output_config import UploadConfig, checked_address
from game_rl.errors import ConfigError

GOOD = {
    "s3://bucket": "s3://bucket",
    "s3://bucket/a folder/": "s3://bucket/a folder",
    "gs://bucket/a@b": None,
    "az://container/x": "az://container/x",
    "file:///mnt/disk@home/runs": "file:///mnt/disk@home/runs",
}
SECRET = "hunter2/secret+word"  # noqa: S105 - planted
WITH_SECRETS = [
    f"s3://AKIA:{SECRET}@bucket/x",
    f"s3://AKIA:{SECRET}",
    f"s3://bucket/x?X-Amz-Signature={SECRET}",
    f"https://{SECRET}@host/x?sig={SECRET}",
    f"az://container/x?sv=1&sig={SECRET}",
    f"ftp://a:{SECRET}@b[",
    f"s3://bucket/x#{SECRET}",
]
RUN = "game: duel\ntotal_timesteps: 50_000\nrun_dir: runs/x\n"


@pytest.mark.parametrize(("address", "found"), GOOD.items())
def test_addresses(address: str, found: str | None) -> None:
    if found is None:
        with pytest.raises(ValueError, match="credentials in the environment"):
            checked_address(address)
    else:
        assert checked_address(address) == found


@pytest.mark.parametrize("bad", ["bucket", "ftp://x", "s3://", "file://host/x", "file:///", ""])
def test_what_is_no_address_is_refused_with_examples(bad: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)write one such as s3://|three slashes"):
        checked_address(bad)


@pytest.mark.parametrize("address", WITH_SECRETS)
@pytest.mark.parametrize(
    "text",
    ["upload: {{to: '{}'}}", "upload: '{}'", "upload: {{too: '{}'}}", "upload: ['{}']"],
)
def test_no_message_repeats_a_secret_of_a_file(tmp_path: Path, address: str, text: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(RUN + text.format(address) + "\n", encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("address", WITH_SECRETS)
@pytest.mark.parametrize("key", ["upload.to=", "upload=", "upload.what=", "game.x=", ""])
def test_no_message_repeats_a_secret_of_an_override(tmp_path: Path, address: str, key: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(RUN, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(path, [f"{key}{address}"])
    assert "hunter2" not in str(refused.value)


def test_an_override_begins_and_ends_uploads(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(RUN, encoding="utf-8")
    config = load_config(path, ["upload.to=s3://bucket/x", "upload.limit_mb_s=2.5"])
    assert config.upload == UploadConfig(to="s3://bucket/x", limit_mb_s=2.5)
    assert load_config(path, ["upload.to=s3://bucket/x", "upload=null"]).upload is None
