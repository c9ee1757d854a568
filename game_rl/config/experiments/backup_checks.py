"""The check that the `upload` of an experiment sends everything that its runs need."""

from collections.abc import Iterator

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Problem
from game_rl.config.upload import UploadConfig


def upload_problems(
    upload: UploadConfig | None, run: RunConfig, *, has_learner: bool
) -> Iterator[Problem]:
    """Yield settings with which the upload would leave out what the runs need.

    Args:
        upload: the experiment's section `upload`; None: there is nothing to check.
        run: the config of a member.
        has_learner: whether members feed one Lake, in run_dir.
    """
    if upload is None:
        return
    if "checkpoints" not in upload.what:
        yield Problem(
            ("upload", "what"),
            "an experiment is uploaded whole, and is of no use without its checkpoints: add "
            "checkpoints, or remove the section and copy the files",
        )
    if run.lake is None:
        return
    if run.lake.path is not None and not has_learner:
        yield Problem(
            ("upload",),
            f"it sends run_dir, but members have their Lake elsewhere, at {run.lake.path}: remove "
            "member.lake.path, so that each has its own in run_dir, or remove this section",
            (("member", "lake", "path"),),
        )
    elif "lake" not in upload.what:
        way_out = "add lake" if has_learner else "add lake, or write member: {lake: null}"
        yield Problem(
            ("upload", "what"),
            f"no member could be resumed from its checkpoint without the Lake: {way_out}",
            (("member", "lake"),),
        )
