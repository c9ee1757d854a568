"""`monitor.csv` and `evaluations.npz` as SB3's own code reads and draws them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.checkpoints.evaluation_files import EpisodeLists, write_episodes
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.loggers.log_files import MonitoredEpisode, MonitorFile


def episode(number: int, ended_s: float) -> MonitoredEpisode:
    return MonitoredEpisode(
        reward=number / 3,
        length=10 + number,
        is_success=number % 2 == 0,
        start_state=f"level_{number % 2 + 1}",
        timesteps=100 * number,
        ended_s=ended_s,
    )


def written(path: Path, numbers: range) -> None:
    file = MonitorFile(path, "game_rl/duel-v0")
    for number in numbers:
        file.add([episode(number, file.t_start + number)])
    file.close()


def test_sb3_reads_the_episodes(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    from stable_baselines3.common.monitor import load_results
    from stable_baselines3.common.results_plotter import ts2xy

    written(tmp_path / "monitor.csv", range(150))
    frame = load_results(str(tmp_path))
    assert frame["r"].tolist() == [round(n / 3, 6) for n in range(150)]
    assert frame["l"].tolist() == [10 + n for n in range(150)]
    assert frame["is_success"].tolist() == [n % 2 == 0 for n in range(150)]
    assert frame["start_state"].tolist() == [f"level_{n % 2 + 1}" for n in range(150)]
    np.testing.assert_allclose(frame["t"], range(150), atol=1e-3)
    x, y = ts2xy(frame, "timesteps")
    np.testing.assert_array_equal(x, np.cumsum([10 + n for n in range(150)]))
    np.testing.assert_allclose(y, [n / 3 for n in range(150)], atol=1e-6)


def test_sb3_draws_the_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot
    from stable_baselines3.common import results_plotter

    written(tmp_path / "monitor.csv", range(150))
    results_plotter.plot_results([str(tmp_path)], None, results_plotter.X_TIMESTEPS, "duel")
    (axes,) = pyplot.gcf().axes
    points: Any = axes.collections[0].get_offsets()
    (mean,) = axes.lines
    means: Any = mean.get_xdata()
    assert len(points) == 150
    assert len(means) == 51  # SB3's window has 100 episodes
    pyplot.close("all")


def test_a_file_goes_on_with_its_first_header(tmp_path: Path) -> None:
    path = tmp_path / "monitor.csv"
    written(path, range(3))
    written(path, range(3, 5))
    header, columns, *rows = path.read_text(encoding="utf-8").splitlines()
    assert header.startswith('#{"t_start": ')
    assert columns.startswith("r,l,t,")
    assert [row.split(",")[1] for row in rows] == ["10", "11", "12", "13", "14"]


def test_what_a_game_does_not_define_is_empty(tmp_path: Path) -> None:
    file = MonitorFile(tmp_path / "monitor.csv", "x")
    file.add(
        [
            MonitoredEpisode(
                reward=1, length=2, is_success=None, start_state="", timesteps=4, ended_s=0
            )
        ]
    )
    file.close()
    last = (tmp_path / "monitor.csv").read_text(encoding="utf-8").splitlines()[-1]
    assert last.split(",")[3:] == ["", "", "4"]


def test_evaluations_are_drawn_as_sb3s_guide_does(tmp_path: Path) -> None:
    lists = EpisodeLists(
        [100, 200], [[1.0, 2.0], [3.0, 5.0]], [[7, 8], [9, 9]], [[True, False]] * 2
    )
    write_episodes(RunDir(tmp_path), lists)
    with np.load(tmp_path / "evaluations.npz") as found:
        assert found["timesteps"].tolist() == [100, 200]
        assert np.mean(found["results"], axis=1).tolist() == [1.5, 4.0]
        assert found["ep_lengths"].shape == (2, 2)
        assert found["successes"].tolist() == [[True, False]] * 2


@pytest.mark.parametrize(
    "head", [b"#[[[[\n", b"#{}\n", b'#{"t_start": null}\n', b"\xff\xfe\n", b"\n"]
)
def test_a_damaged_header_is_named(head: bytes, tmp_path: Path) -> None:
    path = tmp_path / "monitor.csv"
    path.write_bytes(head)
    with pytest.raises(UsageError, match=r"monitor.csv is damaged"):
        MonitorFile(path, "duel")
