"""How many processes play a training's envs; the preflight, which imports no torch, asks too."""


def training_workers(n_envs: int, cpus: int) -> int:
    """Processes for a training's envs: while one half plays, a CPU chooses for the other."""
    return min(n_envs, 2 * max(1, cpus - 1))
