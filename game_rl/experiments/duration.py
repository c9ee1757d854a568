"""How long an experiment's members take, from how fast they are side by side."""

from game_rl.config.experiments import Population
from game_rl.experiments.growth import stretches
from game_rl.preflight.speed import MeasuredSpeed, SpeedForecast, playing_s

_JOB_S = 1.3  # a process is forked, a checkpoint read, a result left; two at once on two cores
_DECISION_S = 1.0  # the record, and the copies that begin from it


def duration_s(
    population: Population,
    speed: SpeedForecast | None,
    measured: MeasuredSpeed | None,
    slots: int,
    episode_timesteps: float,
) -> float | None:
    """Seconds of all generations in turns, and of the champion's episodes; without a learner's.

    Args:
        speed: of a member's run, whose own final evaluation nobody plays; None, as the next: nobody
            has measured it.
        slots: members that train at once.
        episode_timesteps: mean length of an episode.
    """
    if speed is None or measured is None:
        return None
    config, evaluation = population.config, population.run.evaluation

    def playing(episodes: int) -> float:
        return playing_s(evaluation, episodes, measured, episode_timesteps=episode_timesteps)

    final_s = playing(evaluation.final_episodes)
    learning_s = (speed.wall_s - measured.start_s - final_s) / stretches(config)
    start_s = measured.start_s + _JOB_S
    turns = -(-config.members // slots)
    seconds = config.generations * (turns * (start_s + learning_s) + _DECISION_S)
    if config.train_on is not None:
        more = config.train_on.timesteps / config.timesteps_per_generation
        seconds += start_s + more * learning_s + _DECISION_S
    candidates = -(-config.champion.candidates // slots)
    return seconds + (candidates + 1) * (start_s + playing(config.champion.episodes))
