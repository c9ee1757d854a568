"""Who is cloned over, beside a plain reading of the rule."""

from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.experiments.mixture_config import CloneConfig
from game_rl.experiments.plans.evolution import Copy, Scored, clones

VALUES = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])


def scored(values: list[float | None], rewards: list[float]) -> list[Scored]:
    return [Scored(n, v, r) for n, (v, r) in enumerate(zip(values, rewards, strict=True))]


@given(
    st.lists(st.tuples(VALUES, st.sampled_from([0.0, 1.0])), min_size=3, max_size=6), st.booleans()
)
def test_to_all_takes_the_broken_and_whom_the_learner_beats(
    drawn: list[tuple[float | None, float]], only_if_better: bool
) -> None:
    *members, learner = scored([value for value, _ in drawn], [reward for _, reward in drawn])
    wanted = []
    finite = [m for m in members if m.fitness is not None]
    best = max(finite, key=lambda m: (m.fitness, m.mean_reward, -m.number), default=None)
    for member in members:
        if learner.fitness is None:
            if member.fitness is None and best is not None:
                wanted.append(Copy(member.number, best.number))
            continue
        is_beaten = member.fitness is None or (learner.fitness, learner.mean_reward) > (
            member.fitness,
            member.mean_reward,
        )
        if is_beaten or not only_if_better:
            wanted.append(Copy(member.number, learner.number))
    assert clones(members, learner, CloneConfig(only_if_better=only_if_better)) == wanted


def test_to_worst_takes_the_worst_and_only_if_it_is_beaten() -> None:
    members = scored([0.5, 0.25, 0.75], [0.0, 0.0, 0.0])
    config = CloneConfig(to="worst")
    assert clones(members, Scored(3, 0.6, 0.0), config) == [Copy(1, 3)]
    assert clones(members, Scored(3, 0.25, 0.0), config) == []
    assert clones(members, Scored(3, 0.25, 1.0), config) == [Copy(1, 3)]
