"""The number of worker processes; a module of its own for the preflight, which imports no torch.

In both functions `wanted` is the number in the config, or None if the config leaves it open.
"""


def training_workers(wanted: int | None, *, n_envs: int, cpus: int) -> int:
    """Return the workers of a training; one CPU is left to choose actions for the idle half."""
    return min(wanted or 2 * max(1, cpus - 1), n_envs)


def evaluation_workers(wanted: int | None, *, n_envs: int, cpus: int) -> int:
    """Return the workers of an evaluation, whose envs all play at once."""
    return min(wanted or cpus, n_envs)
