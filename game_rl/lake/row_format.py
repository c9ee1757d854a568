"""The observations that a Lake's rows make."""

from game_rl.envs.observation import ObservationFormat
from game_rl.lake.lake_schema import LakeSchema


def observation_format_of(schema: LakeSchema) -> ObservationFormat:
    """Return the format of the observations in a Lake of pictures or of parts.

    It is the one from which `LakeSchema.of` made the schema. A function here and no property there,
    because a format needs gymnasium, which the uploader's process does without.
    """
    assert schema.arrays is None
    if schema.parts is None:
        return ObservationFormat(schema.packing, schema.frame_stack)
    return ObservationFormat(schema.parts.screen, schema.frame_stack, schema.parts.parts)
