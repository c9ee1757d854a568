"""Episodes of a packed agent: clips for its card, and recorded ones from which others can learn."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from game_rl.callbacks.evaluation import Evaluation
from game_rl.episodes.episode_files import EpisodeWriter, played_under
from game_rl.episodes.logged_episodes import (
    LoggedEpisodes,
    read_episodes_of,
    read_logged_episodes,
)
from game_rl.errors import GameRLError
from game_rl.files.durable_files import write_atomic
from game_rl.files.pretrained import RECORDED_FOLDER
from game_rl.game_check.recorded_episode import RecordedEpisode
from game_rl.hub.agent_package import EARLY, EPISODE_CLIPS, AgentPackage
from game_rl.playback.trained_run import TrainedRun
from game_rl.system.units import format_bytes
from game_rl.viewer.report_clips import (
    ChosenEpisode,
    best_and_worst,
    first_episode,
    save_episode,
)

_RECORDED = 10
_LOGGED_S = 30.0
_MOST_LOGGED_BYTES = 2_000_000
_LOG_BYTES = 2**30


def write_recorded(agent: TrainedRun, evaluation: Evaluation, folder: Path) -> None:
    """Write the first episodes of an evaluation as recorded episodes, successes before others.

    Args:
        evaluation: of envs that log their episodes.
    """
    game = agent.game
    config = agent.config.env
    found = [each for each in evaluation.ended if not each.log.fault]
    found.sort(key=lambda each: not each.success)
    if found:
        (folder / RECORDED_FOLDER).mkdir()
    for number, each in enumerate(found[:_RECORDED]):
        log = each.log
        episode = RecordedEpisode(
            start_state=log.start_state,
            frame_skip=config.frame_skip,
            idle_frames=log.idle_frames,
            game_seed=log.game_seed,
            actions=tuple(game.action_names[action] for action in log.actions),
            rom_sha256=game.rom.sha256,
            reward=None if config.rewards else log.game_reward,  # which is that of game.yaml
            success=each.success,
        )
        text = episode.model_dump_json(exclude={"presses"}, exclude_none=True)
        write_atomic(folder / RECORDED_FOLDER / f"{number:02}.json", text + "\n")


def record_clips(
    run: TrainedRun,
    agent: TrainedRun,
    evaluation: Evaluation,
    folder: Path,
    *,
    before: AgentPackage | None,
    tell: Callable[[str], None],
) -> Iterator[tuple[str, str]]:
    """Record the first episode of a run, and the best and the worst of an evaluation.

    Args:
        run: the run that is packed.
        agent: the packed agent, which was evaluated.
        before: the manifest of `run`, if that is an agent, which has a clip but no log.
        tell: called with what is left out, in words.

    Yields:
        Title and description of those that were recorded, as `early.mp4` and so on.
    """
    early: Iterable[ChosenEpisode] = first_episode(read_logged_episodes(run.run_dir))
    if before is not None and before.early:
        shutil.copy(run.run_dir.root / EARLY, folder / EARLY)
        yield "Early", before.early
        early = ()
    with TemporaryDirectory(prefix="game_rl_episodes_") as temporary:
        logged = _log_of(agent, evaluation, Path(temporary))
        for game, chosen in (
            *((run.game, each) for each in early),
            *((agent.game, each) for each in best_and_worst(logged, of="the evaluation")),
        ):
            name = f"{chosen.title.lower()}.mp4"
            assert name in EPISODE_CLIPS
            try:
                file = save_episode(chosen.logged, game, folder / name, most_s=_LOGGED_S)
            except GameRLError as error:
                tell(f"without {name}: {error}")
                continue
            if (size := file.stat().st_size) > _MOST_LOGGED_BYTES:
                file.unlink()
                most = format_bytes(_MOST_LOGGED_BYTES)
                tell(f"without {name}: it has {format_bytes(size)}, and {most} is the most")
                continue
            yield chosen.title, chosen.about


def _log_of(agent: TrainedRun, evaluation: Evaluation, folder: Path) -> LoggedEpisodes:
    """Log the episodes of an evaluation as a run does."""
    under = played_under(agent.config, agent.game)
    writer = EpisodeWriter(folder, limit_bytes=_LOG_BYTES, under=under, next_number=1)
    writer.begin()
    for each in evaluation.ended:
        writer.add(
            each,
            timesteps=agent.state.num_timesteps,
            kind="final",
            deterministic=evaluation.deterministic,
        )
    writer.close()
    return read_episodes_of(folder)
