"""The section `fork`: how a run begins from a checkpoint of another run."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.run_at import RunAt
from game_rl.config.strict_model import StrictModel


class ForkConfig(StrictModel):
    """A fork: the run begins from a checkpoint of another run, its parent, which stays as it is."""

    run: Annotated[RunAt, Field(examples=["runs/duel_ppo@50176"])]
    """The parent's folder, with @T for its checkpoint of timestep T; without @T the newest one."""
    optimiser: Literal["keep", "new"] = "keep"
    """keep: take over the parent's moments. new: moments begin at zero, which another algorithm
    needs."""
    counters: Literal["keep", "new"] = "keep"
    """keep: timesteps, schedules and curves continue from T, and total_timesteps counts from the
    parent's beginning. new: the run begins at timestep 0 with the parent's weights. If it has
    algorithm.learn_from.offline, it goes through that phase first."""
    weight_noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Standard deviation of Gaussian noise that is added to the weights of each layer, in units of
    their root mean square. It is drawn from the run's seed. Biases and normalisations get no noise.
    0: no noise."""
