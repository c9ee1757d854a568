"""The duration of an experiment, from the measured speeds of its members and its learner."""

from dataclasses import dataclass

from game_rl.config.experiments.population_files import Population
from game_rl.config.schema import RunConfig
from game_rl.experiments.forecast.growth import stretches
from game_rl.preflight.preflight_report import Report
from game_rl.preflight.speed import ExperimentSpeed, MeasuredSpeed, playing_s

_JOB_S = 1.3  # fork a process, read a checkpoint, leave a result; for two at once on two cores
_DECISION_S = 1.0  # write the record, and make the copies


@dataclass(frozen=True)
class Duration:
    """The duration of an experiment, in seconds.

    Attributes:
        members_s: time of the members in all generations; they take turns on the slots.
        learner_s: time of the learner's runs in all generations.
        champion_s: time of the episodes that choose the champion and that it plays afterwards.
        at_once: whether the learner trains at the same time as the members, and not after them.
    """

    members_s: float
    learner_s: float
    champion_s: float
    at_once: bool = False

    @property
    def wall_s(self) -> float:
        both = (self.members_s, self.learner_s)
        return (max(both) if self.at_once else sum(both)) + self.champion_s


def duration(
    population: Population,
    member: Report,
    learner: Report | None,
    measured: ExperimentSpeed | None,
    slots: int,
    episode_timesteps: float,
) -> Duration | None:
    """Estimate the duration of an experiment; None without a measurement of the machine.

    The final evaluation of a run does not count: members and learner do not play it.

    Args:
        member: report with the measured speed.
        learner: report with the measured speed, or None without a learner.
        slots: members that train at once.
        episode_timesteps: mean length of an episode.
    """
    if measured is None:
        return None
    config, run, speed = population.config, population.run, measured.member
    start_s = speed.start_s + _JOB_S
    learning_s = _training_s(run, member, speed, episode_timesteps) / stretches(config)
    turns = -(-config.members // slots)
    members_s = config.generations * (turns * (start_s + learning_s) + _DECISION_S)
    if config.train_on is not None:
        more = config.train_on.timesteps / config.timesteps_per_generation
        members_s += start_s + more * learning_s + _DECISION_S
    episodes = config.champion.episodes
    chosen_s = playing_s(run.evaluation, episodes, speed, episode_timesteps=episode_timesteps)
    turns = -(-(config.champion.candidates + config.has_apprentice) // slots) + 1
    learner_s = 0.0
    if population.learner is not None:
        assert learner is not None
        assert measured.learner is not None
        alone = measured.learner
        once_s = _training_s(population.learner, learner, alone, episode_timesteps)
        learner_s = config.generations * (alone.start_s + _JOB_S + once_s)
    return Duration(members_s, learner_s, turns * (start_s + chosen_s))


def _training_s(
    run: RunConfig, report: Report, measured: MeasuredSpeed, episode_timesteps: float
) -> float:
    """Return the time of a whole run, without its start and its final evaluation."""
    assert report.speed is not None
    episodes = run.evaluation.final_episodes
    final_s = playing_s(run.evaluation, episodes, measured, episode_timesteps=episode_timesteps)
    return report.speed.wall_s - measured.start_s - final_s
