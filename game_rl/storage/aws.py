"""Settings of Amazon S3, and of stores that speak S3, from the places of AWS's own tools."""

import configparser
import os
from pathlib import Path


def aws_endpoint() -> str:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def aws_settings() -> dict[str, str]:
    """Return settings that obstore does not look up: files of AWS's own tools, and the endpoint."""
    settings = {"endpoint": aws_endpoint()} if aws_endpoint() else {}
    profile = os.environ.get("AWS_PROFILE", "default")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    home = Path("~/.aws").expanduser()
    if not region:
        config = _section("AWS_CONFIG_FILE", home / "config", f"profile {profile}", profile)
        region = config.get("region") or "us-east-1"
    settings["region"] = region
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        found = _section("AWS_SHARED_CREDENTIALS_FILE", home / "credentials", profile)
        for theirs, ours in {
            "aws_access_key_id": "access_key_id",
            "aws_secret_access_key": "secret_access_key",
            "aws_session_token": "session_token",
        }.items():
            if theirs in found:
                settings[ours] = found[theirs]
    return settings


def _section(variable: str, default: Path, *names: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(os.environ.get(variable) or default)
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}
    return next((dict(parser[name]) for name in names if parser.has_section(name)), {})
