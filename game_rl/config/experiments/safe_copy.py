"""What of an experiment's runs keeps its `upload` from sending all that they need."""

from collections.abc import Iterator

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Problem
from game_rl.config.upload import UploadConfig


def upload_problems(
    upload: UploadConfig | None, run: RunConfig, *, has_learner: bool
) -> Iterator[Problem]:
    """Args:
    run: the config of a member.
    has_learner: members feed one Lake, in run_dir.
    """
    if upload is None:
        return
    if "checkpoints" not in upload.what:
        yield Problem(
            ("upload", "what"),
            "an experiment is stored whole, and nothing else of it is of use without checkpoints: "
            "add checkpoints, or remove the section and copy the files",
        )
    if run.lake is None:
        return
    if run.lake.path is not None and not has_learner:
        yield Problem(
            ("upload",),
            f"it sends run_dir, and members have their Lake elsewhere, at {run.lake.path}: remove "
            "member.lake.path, so that each has its own in run_dir, or remove this section",
            (("member", "lake", "path"),),
        )
    elif "lake" not in upload.what:
        way_out = "add lake" if has_learner else "add lake, or write member: {lake: null}"
        yield Problem(
            ("upload", "what"),
            f"no member could go on from its checkpoint without the Lake that it names: {way_out}",
            (("member", "lake"),),
        )
