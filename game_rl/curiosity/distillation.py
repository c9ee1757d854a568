"""Random network distillation: how new an observation is, and the advantages of seeing it.

Burda et al. 2018, arXiv:1810.12894: a network learns to predict what a random network makes of an
observation, and its error is the reward.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from game_rl.algorithms.networks import Adam
from game_rl.buffers.rollout_buffer import Indices, PackedRolloutBuffer
from game_rl.buffers.unpacking import Tensors
from game_rl.curiosity.curiosity_feature import (
    BATCH_SIZE,
    CONVOLUTIONS,
    N_CODES,
    N_UNITS,
    CuriosityInputs,
    SavedCuriosity,
    fits,
    is_one_hot,
)
from game_rl.envs.observation import SCREEN, ObservationFormat
from game_rl.returns import endless_advantages

_LEARNING_RATE = 1e-4
_LARGEST = 5.0  # deviations of an input


class CuriosityNetwork(nn.Module):
    """Convolutions of the screen, and two hidden layers; float32 [n, n_inputs] to [n, outputs]."""

    def __init__(self, inputs: CuriosityInputs, n_outputs: int) -> None:
        super().__init__()
        self._screen = inputs.screen if inputs.convolved else None
        self._n_pixels = inputs.n_pixels
        layers: list[nn.Module] = []
        if self._screen is not None:
            before = self._screen[0]
            for channels, kernel, stride in CONVOLUTIONS:
                layers += [nn.Conv2d(before, channels, kernel, stride), nn.ReLU()]
                before = channels
        self.convolutions = nn.Sequential(*layers)
        self.hidden = nn.Sequential(
            nn.Linear(inputs.n_features, N_UNITS),
            nn.ReLU(),
            nn.Linear(N_UNITS, N_UNITS),
            nn.ReLU(),
            nn.Linear(N_UNITS, n_outputs),
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if self._screen is not None:
            pixels = rows[:, : self._n_pixels].reshape(-1, *self._screen)
            of_screen = self.convolutions(pixels).flatten(1)
            rows = torch.cat((of_screen, rows[:, self._n_pixels :]), dim=1)
        found: torch.Tensor = self.hidden(rows)
        return found


class Moments:
    """Mean and variance of all rows so far, weighted alike.

    Attributes:
        n: number of rows.
        mean: float32, of the shape of a row.
        var: as `mean`; ones before the first row.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.n = 0
        self.mean = torch.zeros(shape, device=device)
        self.var = torch.ones(shape, device=device)

    def update(self, rows: torch.Tensor) -> None:
        mean = rows.mean(0)
        var = rows.var(0, unbiased=False)
        n = self.n + len(rows)
        share = len(rows) / n
        step = mean - self.mean
        self.var = (1 - share) * self.var + share * var + share * (1 - share) * step**2
        self.mean = self.mean + share * step
        self.n = n


class Distillation:
    """Adds to a rollout's advantages those of a reward for what is new, and learns from it.

    As in the paper: a value network of its own for that reward, whose returns go on over the ends
    of episodes; rewards divided by the running deviation of their discounted sum; observations
    normalised and clipped to 5 deviations; predictions are learned on a quarter of the timesteps.
    Of the screen only the newest one is seen.

    It draws no random numbers but its own.

    Args:
        form: of the observations.
        coef: weight of these advantages beside those of the game's rewards.
        gamma: discount of the reward for what is new.
        seed: of the first weights and of the order in which timesteps are learned.

    Attributes:
        error: mean error of the prediction in the last rollout.
        share: mean size of the added advantages in the last rollout, before `coef`, divided by
            that of the game's.
    """

    error = 0.0
    share = 0.0

    def __init__(
        self,
        form: ObservationFormat,
        *,
        coef: float,
        gamma: float,
        n_envs: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self._form = form
        self._inputs = CuriosityInputs.of(form)
        self._coef = coef
        self._gamma = gamma
        self._device = device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            networks = [CuriosityNetwork(self._inputs, n) for n in (N_CODES, N_CODES, 1)]
        self.target, self.predictor, self.critic = (each.to(device) for each in networks)
        self.target.requires_grad_(requires_grad=False)
        learned = [*self.predictor.parameters(), *self.critic.parameters()]
        self._optimiser = Adam(learned, lr=_LEARNING_RATE)
        self.seen = Moments((self._inputs.n_inputs,), device)
        self.sums = Moments((), torch.device("cpu"))
        self._sum = np.zeros(n_envs, np.float32)
        self._generator = torch.Generator().manual_seed(seed)

    def act(self, buffer: PackedRolloutBuffer) -> None:
        """Reward and learn a rollout that is full and has the game's advantages."""
        buffer.number_by_env()
        shape = (buffer.n_envs, buffer.buffer_size)
        errors = np.empty(shape[0] * shape[1], np.float32)
        values = np.empty_like(errors)
        with torch.no_grad():
            for batch in _batches(len(errors)):
                self.seen.update(self._rows(buffer, self._after(buffer, batch)))
            for batch in _batches(len(errors)):
                after = self._scaled(self._rows(buffer, self._after(buffer, batch)))
                wrong = (self.predictor(after) - self.target(after)).square().mean(1)
                errors[batch] = wrong.cpu().numpy()
                before = self._scaled(self._rows(buffer, batch))
                values[batch] = self.critic(before).flatten().cpu().numpy()
        rewards = self._normalised(errors.reshape(shape))
        advantages = endless_advantages(
            rewards, values.reshape(shape), gamma=self._gamma, lam=buffer.gae_lambda
        ).reshape(-1)
        own = buffer.advantages.reshape(-1)
        self.error = float(errors.mean())
        self.share = float(np.abs(advantages).mean() / (np.abs(own).mean() + 1e-8))
        buffer.advantages[:] = (own + self._coef * advantages).reshape(buffer.advantages.shape)
        self._learn(buffer, torch.from_numpy(advantages + values).to(self._device))

    def _after(self, buffer: PackedRolloutBuffer, timesteps: Indices) -> Indices:
        """Return the timesteps that follow; the last of an env is its own, which is as new."""
        is_last = timesteps % buffer.buffer_size == buffer.buffer_size - 1
        return np.where(is_last, timesteps, timesteps + 1)

    def _rows(self, buffer: PackedRolloutBuffer, timesteps: Indices) -> torch.Tensor:
        return observed_rows(buffer.samples(timesteps).observations, self._form, self._inputs)

    def _scaled(self, rows: torch.Tensor) -> torch.Tensor:
        scaled = (rows - self.seen.mean) / (self.seen.var + 1e-4).sqrt()
        return scaled.clamp(-_LARGEST, _LARGEST)

    def _normalised(self, errors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Divide by the running deviation of the discounted sums; float32 [n_envs, n_steps]."""
        sums = np.empty_like(errors)
        for step in range(errors.shape[1]):
            self._sum = self._gamma * self._sum + errors[:, step]
            sums[:, step] = self._sum
        self.sums.update(torch.from_numpy(sums.reshape(-1)))
        scaled: NDArray[np.float32] = errors / np.float32(np.sqrt(self.sums.var.item() + 1e-8))
        return scaled

    def _learn(self, buffer: PackedRolloutBuffer, returns: torch.Tensor) -> None:
        order = torch.randperm(len(returns), generator=self._generator).numpy()
        for start in range(0, len(order), BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            values = self.critic(self._scaled(self._rows(buffer, batch))).flatten()
            loss = functional.mse_loss(values, returns[torch.from_numpy(batch).to(self._device)])
            quarter = batch[: len(batch) // 4]
            if len(quarter):
                seen = self._scaled(self._rows(buffer, self._after(buffer, quarter)))
                loss = loss + functional.mse_loss(self.predictor(seen), self.target(seen))
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
            self._optimiser.step()

    def _named(self) -> dict[str, torch.Tensor]:
        """Return all weights and statistics but the optimiser's."""
        found: dict[str, torch.Tensor] = {}
        for name in ("target", "predictor", "critic"):
            network: CuriosityNetwork = getattr(self, name)
            found |= {f"{name}.{key}": p.detach() for key, p in network.named_parameters()}
        for name in ("seen", "sums"):
            moments: Moments = getattr(self, name)
            found |= {f"{name}.mean": moments.mean, f"{name}.var": moments.var}
        return found

    def _moments(self) -> dict[str, torch.Tensor]:
        """Return the optimiser's moments; zeros before its first step."""
        found: dict[str, torch.Tensor] = {}
        for number, parameter in enumerate(self._optimiser.param_groups[0]["params"]):
            state = self._optimiser.state.get(parameter, {})
            for name in ("exp_avg", "exp_avg_sq"):
                found[f"{name}.{number}"] = state.get(name, torch.zeros_like(parameter)).detach()
        return found

    def saved(self) -> SavedCuriosity:
        tensors = {**self._named(), **self._moments(), "sum": torch.from_numpy(self._sum)}
        steps = {int(state["step"]) for state in self._optimiser.state.values()} or {0}
        assert len(steps) == 1
        return SavedCuriosity(
            tensors={name: values.cpu().numpy().tobytes() for name, values in tensors.items()},
            optimiser_steps=steps.pop(),
            seen=self.seen.n,
            rewarded=self.sums.n,
            generator=self._generator.get_state().numpy().tobytes(),
        )

    def load(self, saved: SavedCuriosity) -> bool:
        """Go on from what was saved; return False, and change nothing, if it is of other sizes."""
        named = self._named()
        moments = self._moments()
        sizes = {name: values.numel() for name, values in {**named, **moments}.items()}
        if not fits(saved, sizes | {"sum": len(self._sum)}):
            return False

        def read(name: str, like: torch.Tensor) -> torch.Tensor:
            values = np.frombuffer(saved.tensors[name], np.float32).reshape(like.shape)
            return torch.from_numpy(values.copy()).to(like.device)

        for name, values in named.items():
            values.copy_(read(name, values))
        self.seen.n = saved.seen
        self.sums.n = saved.rewarded
        self._sum = np.frombuffer(saved.tensors["sum"], np.float32).copy()
        for number, parameter in enumerate(self._optimiser.param_groups[0]["params"]):
            self._optimiser.state[parameter] = {
                "step": torch.tensor(float(saved.optimiser_steps)),
                **{name: read(f"{name}.{number}", parameter) for name in ("exp_avg", "exp_avg_sq")},
            }
        state = np.frombuffer(saved.generator, np.uint8).copy()
        self._generator.set_state(torch.from_numpy(state))
        return True


def observed_rows(
    observations: Tensors, form: ObservationFormat, inputs: CuriosityInputs
) -> torch.Tensor:
    """Return what the networks get of observations, float32 [n, n_inputs], not normalised."""
    rows = []
    if inputs.screen is not None:
        screens = observations[SCREEN] if isinstance(observations, dict) else observations
        newest = screens[:, -inputs.screen[0] :].float()
        if inputs.reduction > 1:
            newest = functional.avg_pool2d(newest, inputs.reduction)
        rows.append(newest.flatten(1))
    for name, part in form.parts:
        assert isinstance(observations, dict)
        values = observations[name].flatten(1)
        if is_one_hot(part):
            values = functional.one_hot(values.long(), part.n_values).flatten(1)
        rows.append(values.float())
    return torch.cat(rows, dim=1)


def _batches(n: int) -> Iterator[Indices]:
    return (np.arange(start, min(start + BATCH_SIZE, n)) for start in range(0, n, BATCH_SIZE))
