"""The list of events in words."""

import pytest

from game_rl.events import Evaluated
from game_rl.viewer.event_words import happening, percents_spaced


def test_a_share_is_rounded_and_written_as_elsewhere_on_the_page() -> None:
    event = Evaluated(
        timesteps=1, policy_timesteps=1, episodes=8, mean_reward=1.5, std_reward=0.5,
        success_rate=1 / 8, mean_length=60, seconds=2,
    )  # fmt: skip
    found = happening(event)
    assert found is not None
    assert found.text == "8 episodes: success 13\u00a0%, reward 1.50"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("12.5% of 8, 95 % interval", "12.5\u00a0% of 8, 95\u00a0% interval"),
        ("from runs/a1%20b and 100%", "from runs/a1%20b and 100\u00a0%"),
        ("no share", "no share"),
    ],
)
def test_percentages_stand_apart_and_paths_stay(text: str, shown: str) -> None:
    assert percents_spaced(text) == shown
