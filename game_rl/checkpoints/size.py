"""Size of a checkpoint, for forecasts and for the disk space that is kept free for it."""

_FLOAT_BYTES = 4
_MOMENTS = 2  # of Adam and RAdam, for each weight

# Bytes of file headers, counters, random numbers and the config.
OVERHEAD_BYTES = 43_000
# Bytes of each env's compressed emulator state; a game with much RAM takes more.
EMULATOR_STATE_BYTES = 10_500


def checkpoint_bytes(
    *,
    policy_weights: int,
    optimized_weights: int,
    n_envs: int,
    observation_bytes: int,
    replay_bytes: int,
) -> int:
    """Return the approximate size of all files of a checkpoint.

    The overheads were measured on checkpoints of the bundled game.

    Args:
        policy_weights: numbers in the policy, including a target network.
        optimized_weights: numbers among them that the optimiser changes.
        observation_bytes: bytes of one env's stack.
        replay_bytes: bytes of the saved replay, or 0 if none is saved.
    """
    numbers = policy_weights + _MOMENTS * optimized_weights
    envs = n_envs * (observation_bytes + EMULATOR_STATE_BYTES)
    return _FLOAT_BYTES * numbers + envs + replay_bytes + OVERHEAD_BYTES
