"""A run in words: the paragraphs with which its report and the card of its agent begin."""

from collections.abc import Sequence
from contextlib import suppress

from pydantic import ValidationError

from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.config.schema import EnvConfig, ObservationConfig, RunConfig
from game_rl.emulator.emulator import FRAMES_PER_SECOND
from game_rl.events import Evaluated
from game_rl.events.run_view import RunView, reward_interval, success_interval
from game_rl.games.definition import GameDefinition
from game_rl.statistics import percentage
from game_rl.system.units import counted, format_duration
from game_rl.viewer.event_words import percents_spaced

_CONSOLES = {"dmg": "Game Boy", "cgb": "Game Boy Color"}
_MOST_NAMES = 12  # of actions in a sentence


def run_story(view: RunView, config: RunConfig, definition: GameDefinition | None) -> list[str]:
    """Return paragraphs: what the game is, how the training went, and how it ended.

    Args:
        definition: the game file that the run learned on; None if it is not known.
    """
    game = f"It plays {config.game} and has saved no checkpoint yet."
    if definition is not None:
        game = game_in_words(definition, config.env)
    training = [training_in_words(view, config), evaluations_in_words(view.better_evaluations)]
    end = [end_in_words(view), "" if view.final is None else final_in_words(view.final)]
    paragraphs = (game, *(" ".join(filter(None, each)) for each in (training, end)))
    return [percents_spaced(text) for text in paragraphs if text]


def learned_game(state: CheckpointState | None) -> GameDefinition | None:
    """Return the game file that a checkpoint has; None if this version cannot read it."""
    with suppress(ValidationError):
        return None if state is None else GameDefinition.model_validate(state.game)
    return None


def game_in_words(definition: GameDefinition, env: EnvConfig) -> str:
    """Say what the game is, what the agent sees and does, what it earns, and what success means."""
    seconds = env.frame_skip / FRAMES_PER_SECOND
    frames = counted(env.frame_skip, "frame")
    actions = list(definition.actions)
    named = _listed(actions) if len(actions) <= _MOST_NAMES else "game.yaml names them"
    sentences = [
        f"{definition.title} is a game for the {_CONSOLES[definition.hardware]}.",
        f"The agent sees {_seen(env.observation)}, and every {frames} ({seconds:.2f} s) it takes "
        f"one of {len(actions)} actions: {named}.",
    ]
    terms = {name: term.weight for name, term in definition.rewards.items()}
    terms |= {name: term.weight for name, term in env.rewards.items()}
    earned = _listed([name for name, weight in terms.items() if weight > 0])
    lost = _listed([name for name, weight in terms.items() if weight < 0])
    if earned:
        sentences.append(
            f"It is rewarded for {earned}{f', and penalised for {lost}' * bool(lost)}."
        )
    elif lost:
        sentences.append(f"It is penalised for {lost}.")
    if definition.success is not None:
        sentences.append(f"An episode is a success when {definition.success.in_words}.")
    elif definition.reward is None:
        sentences.append("The game defines no success, so the mean reward is the score.")
    return " ".join(sentences)


def _seen(observation: ObservationConfig) -> str:
    size = "at half size" if observation.size == "half" else "at full size"
    colour = "in shades of grey" if observation.colour == "grey" else "in colour"
    seen = [f"the screen {size} {colour}"] if observation.screen else []
    if observation.parts:
        noun = "part" if len(observation.parts) == 1 else "parts"
        seen.append(f"the {noun} {_listed(observation.parts)}")
    return " and ".join(seen)


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def training_in_words(view: RunView, config: RunConfig) -> str:
    """Say how much it was trained, and what policies without learning reach; empty before that."""
    if not view.timesteps:
        return ""
    frames = view.timesteps * config.env.frame_skip + view.waited_frames
    played = format_duration(frames / FRAMES_PER_SECOND)
    text = (
        f"{config.algorithm.name.upper()} learned for {view.timesteps:,} timesteps, {played} of "
        f"the game, in {format_duration(view.trained_s)}"
    )
    if view.events:
        text += f", starting on {view.events[0].time:%Y-%m-%d}"
    if not view.baselines:
        return f"{text}."
    baselines = [
        f"{_score(each.success_rate, each.mean_reward)} ({each.name})" for each in view.baselines
    ]
    return f"{text}. Untrained policies get {_listed(baselines)}."


def evaluations_in_words(events: Sequence[Evaluated]) -> str:
    """Say how the evaluations rose and fell; empty without one."""
    if not events:
        return ""
    first = events[0]
    best = next((event for event in reversed(events) if event.is_best), None)
    last = events[-1]
    text = f"The first evaluation, at timestep {first.policy_timesteps:,}, found {_scored(first)}"
    if best is not None and best is not first:
        text += f"; the best, at timestep {best.policy_timesteps:,}, {_scored(best)}"
    if last is not first and last is not best:
        text += f"; the last {_scored(last)}"
    wins = [event for event in events if event.success_rate]
    if wins and wins[0] is not first and wins[0] is not best:
        text += f". The first success came at timestep {wins[0].policy_timesteps:,}"
    return f"{text}."


def final_in_words(event: Evaluated) -> str:
    """Give the final result with its interval."""
    score = _scored(event)
    if (ends := success_interval(event)) is not None:
        score = score.replace(" success", f" success (95 % interval {percent_interval(ends)} %)", 1)
    elif (ends := reward_interval(event)) is not None:
        score += f" (95 % interval {ends[0]:.2f} to {ends[1]:.2f})"
    way = "its most probable actions" if event.deterministic else "sampled actions"
    return (
        f"In the final evaluation, {counted(event.episodes, 'episode')} that were held out, the "
        f"best policy, that of timestep {event.policy_timesteps:,}, took {way} and had {score}."
    )


def in_percent(share: float) -> str:
    """Return a share as a percentage, with a digit behind the point only where it tells."""
    return f"{percentage(share, 1).removesuffix('.0')} %"


def percent_interval(ends: tuple[float, float]) -> str:
    return "–".join(map(percentage, ends))


def _scored(event: Evaluated) -> str:
    return _score(event.success_rate, event.mean_reward)


def _score(success_rate: float | None, mean_reward: float) -> str:
    reward = f"a mean reward of {mean_reward:.2f}"
    return reward if success_rate is None else f"{in_percent(success_rate)} success and {reward}"


def end_in_words(view: RunView) -> str:
    """Say why the run ended, or that it has not."""
    at = f"timestep {view.timesteps:,}"
    of = "" if view.total_timesteps is None else f" of {view.total_timesteps:,}"
    why = "" if view.end is None else view.end.text
    match view.state:
        case "not begun":
            return "The training has not started."
        case "training":
            return f"It is still training, at {at}{of}."
        case "completed":
            if reached := why or view.ended_by:
                return f"It ended at {at}{of}, because a condition of stop_when was met: {reached}."
            return f"It completed all of its {view.timesteps:,} timesteps."
        case "until":
            return f"It is paused at {at}{of}, as requested."
        case "stopped":
            return f"It was stopped at {at}{of}{f': {why}' if why else ''}."
        case "failed":
            return f"It failed at {at}{of}{f': {why}' if why else ''}."
        case "killed":
            return f"Its process was killed at {at}{of}, so no reason is on record."
    return f"It is at {at}{of}; whether it is still training is unknown."
