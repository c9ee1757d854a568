from game_rl.system.units import counted


def test_one_has_no_plural() -> None:
    assert [counted(n, "timestep") for n in (0, 1, 2_000)] == [
        "0 timesteps",
        "1 timestep",
        "2,000 timesteps",
    ]
