"""The extensions of a run, as its config names them."""

from collections.abc import Sequence

from game_rl.training.extensions import Extension, RunParts
from game_rl.training.lake_extension import LakeExtension
from game_rl.training.learning_extension import LearningExtension
from game_rl.training.teacher_extension import TeacherExtension


def make_extensions(parts: RunParts, more: Sequence[Extension]) -> tuple[Extension, ...]:
    """Build the run's extensions; return them in the order in which their callbacks act.

    They are built in another order, because a teacher is measured before the Lake is opened.

    Args:
        more: extensions that whoever trains the run has built; they come last.
    """
    learning = LearningExtension.of(parts)
    teacher = TeacherExtension.of(parts)
    lake = LakeExtension.of(parts)
    return (*(found for found in (lake, learning, teacher) if found is not None), *more)
