"""How many processes play; the preflight, which imports no torch, asks too.

In both functions `wanted` is the config's number, None if it leaves the choice to us.
"""


def training_workers(wanted: int | None, *, n_envs: int, cpus: int) -> int:
    """Processes for a training's envs: while one half plays, a CPU chooses for the other."""
    return min(wanted or 2 * max(1, cpus - 1), n_envs)


def evaluation_workers(wanted: int | None, *, n_envs: int, cpus: int) -> int:
    """Processes for an evaluation's envs, which all play at once."""
    return min(wanted or cpus, n_envs)
