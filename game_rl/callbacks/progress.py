"""How far the training is and how well it goes, in the terminal."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.evaluation import Evaluation, EvaluationCallback

_LINES_A_RUN = 20  # where there is no terminal to draw a bar on


class ProgressCallback(BaseCallback):
    """A live bar on a terminal, a line every twentieth of the run elsewhere."""

    def __init__(
        self, console: Console, evaluation: EvaluationCallback, *, total_timesteps: int
    ) -> None:
        super().__init__()
        self._console = console
        self._evaluation = evaluation
        self._shown: Evaluation | None = None
        self._total = total_timesteps
        self._started_s = 0.0
        self._started_at = 0
        self._next_line_at = 0
        self._bar = Progress(
            TextColumn("[bold]{task.completed:>11,.0f}[/] / {task.total:,.0f} timesteps"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task: TaskID | None = None

    def _on_training_start(self) -> None:
        self._started_s, self._started_at = time.monotonic(), self.num_timesteps
        if self._console.is_terminal:
            self._task = self._bar.add_task("", total=self._total, status="")
            self._bar.start()

    def _on_rollout_start(self) -> None:
        self._show_evaluation()
        if self._task is not None:
            self._bar.update(self._task, completed=self.num_timesteps, status=self._status())
        elif self.num_timesteps >= self._next_line_at:
            self._next_line_at = self.num_timesteps + self._total // _LINES_A_RUN
            self._console.print(f"{self.num_timesteps:>11,} / {self._total:,}  {self._status()}")

    def _on_step(self) -> bool:
        if self._task is not None:
            self._bar.update(self._task, completed=self.num_timesteps)
        return True

    def _on_training_end(self) -> None:
        self.close()
        self._show_evaluation()

    def close(self) -> None:
        """Give the terminal back; safe to call twice, and after a training that raised."""
        self._bar.stop()

    def _status(self) -> str:
        elapsed_s = time.monotonic() - self._started_s
        rate = (self.num_timesteps - self._started_at) / max(elapsed_s, 1e-9)
        parts = [f"{rate:,.0f}/s"] if self.num_timesteps > self._started_at else []
        episodes = self.model.ep_info_buffer or ()
        if episodes:
            parts.append(f"reward {_mean([e['r'] for e in episodes]):.2f}")
        if self.model.ep_success_buffer:
            parts.append(f"success {_mean(list(self.model.ep_success_buffer)):.0%}")
        return "  ".join(parts)

    def _show_evaluation(self) -> None:
        evaluation = self._evaluation.latest
        if evaluation is None or evaluation is self._shown:
            return
        self._shown = evaluation
        success = evaluation.success_rate
        self._console.print(
            f"{self._evaluation.boundary_timesteps:>11,}   evaluation of {evaluation.episodes}: "
            f"reward {evaluation.mean_reward:.2f} ± {evaluation.std_reward:.2f}"
            + ("" if success is None else f", success {success:.0%}")
            + f", length {evaluation.mean_length:.0f}"
        )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
