"""How a run begins from a checkpoint of another one."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.run_at import RunAt
from game_rl.config.strict_model import StrictModel


class ForkConfig(StrictModel):
    """A run that begins from another run's checkpoint; that run is left as it is."""

    run: Annotated[RunAt, Field(examples=["runs/duel_ppo@200000"])]
    """The run, and @T for its checkpoint of timestep T; without it the newest."""
    optimiser: Literal["keep", "new"] = "keep"
    """keep: its moments go on. new: they begin at zero, as another algorithm needs."""
    counters: Literal["keep", "new"] = "keep"
    """keep: timesteps, schedules and curves go on from T, and total_timesteps counts from the
    parent's beginning. new: the run begins at timestep 0, with the parent's weights; if it has
    algorithm.learn_from.offline, it learns so first."""
    weight_noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Standard deviation of Gaussian noise on the weights of each layer, in units of their root
    mean square, drawn from the run's seed; biases and normalisations stay. 0: none."""
