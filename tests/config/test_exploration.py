from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.algorithms import ExplorationConfig, RestartConfig


@given(
    restarts=st.lists(
        st.builds(
            RestartConfig, at=st.integers(1, 60), start=st.just(0.5), over=st.integers(1, 30)
        ),
        max_size=4,
    )
)
def test_restarts_are_valid_if_each_is_in_the_run_and_after_the_one_before(
    restarts: list[RestartConfig],
) -> None:
    config = ExplorationConfig(restarts=tuple(restarts))
    problems = list(config.problems_in_run(total_timesteps=50, key=("exploration",)))
    in_force = [timestep for each in restarts for timestep in range(each.at, each.at + each.over)]
    is_good = in_force == sorted(set(in_force)) and all(each.at < 50 for each in restarts)
    assert (problems == []) == is_good
    assert all(problem.key[:2] == ("exploration", "restarts") for problem in problems)
