"""The curve of a live mixture over what everybody had played, beside numbers by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from game_rl.checkpoints.evaluation_files import EpisodeLists, write_episodes
from game_rl.event_log import EventFile
from game_rl.events import Ended, Evaluating
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import ChampionRecord, read_record, write_record
from tests.experiments.conftest import (  # noqa: F401 - make_mixture is a fixture
    MakeMixture,
    make_mixture,
)
from tests.experiments.paper_executor import PaperExecutor
from tests.experiments.plans.test_mixture import carry_out

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def tell(folder: ExperimentDir, name: str, moments: Sequence[tuple[int, int]]) -> None:
    """Args: moments: second and timestep of each event."""
    with EventFile(folder.member(name).events) as events:
        for second, timesteps in moments:
            time = NOON + timedelta(seconds=second)
            events.add(
                Evaluating(time=time, timesteps=timesteps, policy_timesteps=timesteps, episodes=1)
            )
        events.add(Ended(time=time, timesteps=timesteps, reason="until", exit_code=0))


def test_each_evaluation_of_the_learner_counts_what_members_had_played_by_then(
    make_mixture: MakeMixture,  # noqa: F811
) -> None:
    mixture = make_mixture("mixture", "members=2", "champion.candidates=2", is_live=True)
    folder = carry_out(mixture, PaperExecutor(3))
    champion = read_record(folder.champion_record, ChampionRecord)
    assert champion is not None
    write_record(folder.champion_record, champion.model_copy(update={"folder": "learner"}))
    tell(folder, "00", [(0, 0), (100, 512)])
    tell(folder, "01", [(0, 0), (20, 100), (60, 512)])  # has ended at 60 s
    tell(folder, "learner", [(0, 0), (20, 64), (50, 128), (200, 256)])
    write_episodes(
        folder.member("learner"),
        EpisodeLists([64, 128, 256], [[1.0], [2.0], [4.0]], [[5], [5], [5]], []),
    )
    found = read_folder(folder.root)
    by_hand = [
        64 + int(512 * 0.2) + 100,
        128 + 256 + int(100 + 412 * 30 / 40),
        256 + 512 + 512,
    ]
    assert [point.total_timesteps for point in found.curve] == by_hand
    frame_skip = mixture.run.env.frame_skip
    assert [point.total_frames for point in found.curve] == [n * frame_skip for n in by_hand]
    assert [point.timesteps for point in found.curve] == [64, 128, 256]
    assert [point.mean_reward for point in found.curve] == [1.0, 2.0, 4.0]
    assert found.total_timesteps == by_hand[-1]
