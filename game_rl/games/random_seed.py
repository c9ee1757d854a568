"""Whether `random_seed` of a game.yaml names a variable that can get a random value."""

from collections.abc import Iterator, Mapping

from game_rl.config.strict_model import Problem
from game_rl.games.start_states import StartStateSpec
from game_rl.games.variable_spec import UNSIGNED, VariableSpec
from game_rl.games.variables import MemoryVariable

_IGNORED = {
    0xFF04: "the divider register, which becomes 0 whatever is written to it",
    0xFF44: "the number of the line that is drawn, which cannot be written",
}


def seed_problems(
    name: str | None,
    start_states: Mapping[str, StartStateSpec],
    variables: Mapping[str, VariableSpec],
) -> Iterator[Problem]:
    """Yield what is wrong with a seed variable, apart from an unknown name.

    Args:
        name: the value of `random_seed`.
    """
    for state_name, state in start_states.items():
        for key, variable, _ in state.values:
            if variable == name:
                yield Problem(
                    ("start_states", state_name, *key),
                    f"{variable} is the random_seed, which gets a random value; remove one of "
                    "the two",
                    reads=(("random_seed",),),
                )
    seed = variables.get(name or "")
    if seed is None or seed.is_whole_number:
        return
    is_type = seed.operation is None and seed.type not in UNSIGNED
    what = f"is of type {seed.type}" if is_type else "is not one whole number in memory"
    yield Problem(
        ("random_seed",),
        f"{name} {what}; a seed is one of {', '.join(UNSIGNED)}, without `mask`",
        reads=(("variables", str(name)),),
    )


def register_problems(seed: MemoryVariable) -> Iterator[Problem]:
    """Yield a problem for each byte of a seed that is a register which ignores what is written."""
    for place in seed.numbers:
        for register in range(place.address, place.address + place.n_bytes):
            if register in _IGNORED:
                yield Problem(
                    ("random_seed",),
                    f"{seed.name} is at 0x{register:04X}, {_IGNORED[register]}, so every seed "
                    "would be the same; name the variable in which the game keeps its random "
                    "numbers, or remove `random_seed`: env.max_idle_frames varies the beginning",
                    reads=(("variables", seed.name),),
                )
