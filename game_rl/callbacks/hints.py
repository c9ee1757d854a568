"""Hints while a run trains, from its curves and evaluations."""

from array import array
from collections.abc import Callable, Sequence
from shlex import quote

import numpy as np

from game_rl.callbacks.boundary import BoundaryCallback, Interval
from game_rl.config.schema import RunConfig
from game_rl.envs.episode_progress import STUCK_AFTER_TIMESTEPS
from game_rl.events import BaselinePlayed, CurvesRecorded, Evaluated, Event, HintGiven
from game_rl.events.event_log import EventLog, read_events
from game_rl.events.run_view import Curve
from game_rl.events.training_hints import HintSettings, Training, hints_for
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game, GameDefinition

_LOOKS = 100  # at the curves, over a run
_AGAIN_AFTER = 0.5  # of the run; a hint that still holds then is given once more


class HintsCallback(BoundaryCallback):
    """Emits `HintGiven` when the curves say something that a person should know.

    It learns of curves and evaluations by `hear`, which has to listen to the run's events, and
    reads those of earlier sessions from the log. Each hint is given once, and once more if it still
    holds half a run later.

    Args:
        showing: returns the number of a logged episode that shows what a curve says, if there is
            one, which a hint then names.
    """

    def __init__(
        self,
        events: EventLog,
        run_dir: RunDir,
        settings: HintSettings,
        *,
        showing: Callable[[str], int | None] = lambda _: None,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._showing = showing
        self._events = events
        self._run_dir = run_dir
        self._settings = settings
        self._looks = Interval(max(1, settings.total_timesteps // _LOOKS))
        self._forget()

    def _forget(self) -> None:
        self._curves: dict[str, tuple[array[int], array[float]]] = {}
        self._evaluations: list[Evaluated] = []
        self._baselines: list[BaselinePlayed] = []
        self._given: dict[str, int] = {}

    def _on_training_start(self) -> None:
        super()._on_training_start()
        earlier = read_events(self._run_dir)
        if earlier:  # it has all that was heard in this session, and what a resume has undone
            self._forget()
        for event in earlier:
            self.hear(event)
        self._looks.last_timesteps = self.num_timesteps

    def hear(self, event: Event) -> None:
        """Take in an event of the run."""
        match event:
            case CurvesRecorded():
                for name, value in event.values.items():
                    timesteps, values = self._curves.setdefault(name, (array("q"), array("d")))
                    timesteps.append(event.timesteps)
                    values.append(value)
            case Evaluated(is_final=False, offline_gradient_steps=None):
                self._evaluations.append(event)
            case BaselinePlayed():
                self._baselines.append(event)
            case HintGiven():
                self._given[event.name] = event.timesteps

    def on_boundary(self, *, is_last: bool) -> None:
        if self._looks.crossed(self.boundary_timesteps) or is_last:
            is_over = self.boundary_timesteps >= self._settings.total_timesteps
            self._look(is_at_end=is_last and is_over)

    def _look(self, *, is_at_end: bool) -> None:
        training = Training(
            settings=self._settings,
            timesteps=self.boundary_timesteps,
            curves={
                name: Curve(np.array(timesteps, np.int64), np.array(values, np.float64))
                for name, (timesteps, values) in self._curves.items()
            },
            evaluations=self._evaluations,
            baselines=self._baselines,
            is_at_end=is_at_end,
        )
        again_after = _AGAIN_AFTER * self._settings.total_timesteps
        for hint in hints_for(training):
            given = self._given.get(hint.name)
            if given is not None and self.boundary_timesteps - given < again_after:
                continue
            text = hint.text
            episode = None
            if hint.shown_by is not None:
                episode = self._showing(hint.shown_by)
            if episode is not None:
                run = quote(str(self._run_dir.root))
                text += f"; to see one of these episodes: game-rl record {run} --logged {episode}"
            self._events.emit(
                HintGiven(
                    timesteps=self.boundary_timesteps,
                    name=hint.name,
                    text=text,
                    key=hint.key,
                    episode=episode,
                )
            )


def hint_settings(config: RunConfig, game: Game) -> HintSettings:
    algorithm = config.algorithm
    definition = game.definition
    reward = algorithm.reward
    return HintSettings(
        total_timesteps=config.total_timesteps,
        n_actions=len(definition.actions),
        action_names=game.action_names,
        value_weight=algorithm.vf_coef,
        scales_rewards=reward.normalize or reward.clip is not None or reward.scale != 1,
        has_endings=bool(definition.endings) or definition.reward is not None,
        truncation=truncating_condition(definition),
    )


def truncating_condition(definition: GameDefinition) -> str:
    """Return the condition of `endings` that truncates episodes that are stuck, as text."""
    n = STUCK_AFTER_TIMESTEPS
    for name, ending in definition.endings.items():
        for _, part in ending.parts():
            for key in ("same_place_for", "no_reward_for"):
                if (present := getattr(part, key)) is not None:
                    return f"a lower `{key}` in `endings: {name}`, which is {present:,} now"
    if definition.place is not None:
        return f"`stuck: {{same_place_for: {n}}}` in `endings`"
    return f"`stuck: {{no_reward_for: {n}}}` in `endings`"
