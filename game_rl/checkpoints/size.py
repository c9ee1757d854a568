"""The bytes of a checkpoint, as its forecast and the space that is kept for it count them."""

_FLOAT_BYTES = 4
_MOMENTS = 2  # that Adam and RAdam keep of each weight

# File formats, counters, random numbers, the config.
OVERHEAD_BYTES = 43_000
# Of each env its emulator, compressed; a game with much RAM takes more.
EMULATOR_STATE_BYTES = 10_500


def checkpoint_bytes(
    *,
    policy_weights: int,
    optimized_weights: int,
    n_envs: int,
    observation_bytes: int,
    replay_bytes: int,
) -> int:
    """Of all its files together; the overheads were measured on checkpoints of the bundled game.

    Args:
        policy_weights: numbers in the policy, a target network's too.
        optimized_weights: those of them that the optimiser changes.
        observation_bytes: of one env, its stack.
        replay_bytes: that are saved with it; 0: none.
    """
    numbers = policy_weights + _MOMENTS * optimized_weights
    envs = n_envs * (observation_bytes + EMULATOR_STATE_BYTES)
    return _FLOAT_BYTES * numbers + envs + replay_bytes + OVERHEAD_BYTES
