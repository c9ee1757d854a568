"""The report as programs and as people read it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from game_rl.config.loader import config_kind, load_config
from game_rl.errors import ConfigError
from game_rl.games.definition import load_game
from game_rl.preflight.facts import EpisodeLengths, run_facts
from game_rl.preflight.preflight import (
    PreflightReport,
    compare_footprint,
    footprint_line,
    preflight,
    report_of,
)
from game_rl.preflight.workload import MeasuredSpeed
from game_rl.system.machine import Machine
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB
from tests.preflight.conftest import FACTS, MACHINE, make_config

CONFIGS = Path(__file__).parents[2] / "configs"
WORKSTATION = Machine(
    ram_bytes=32 * GIB,
    ram_available_bytes=32 * GIB,
    gpus=(Gpu(16 * GIB, 16 * GIB),),
    disk_free_bytes=250 * GIB,
    cpus=8,
    cpu_has_bf16=False,
)


def text_of(report: PreflightReport, width: int = 100) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(report.table())
    return capture.get()


def test_the_json_has_exactly_the_promised_keys() -> None:
    report = report_of(make_config(), FACTS, Machine(**{**vars(MACHINE), "cpus": 16}))
    found = json.loads(json.dumps(report.to_json()))
    assert set(found) == {
        "verdict",
        "ram",
        "vram",
        "replay_vram",
        "disk",
        "training",
        "speed",
        "growth",
        "findings",
    }
    assert set(found["ram"]) == {"predicted_peak_bytes", "limit_bytes", "peak_phase", "parts"}
    assert set(found["disk"]) == {"predicted_total_bytes", "free_bytes", "parts", "plan"}
    assert set(found["training"]) == {
        "timesteps_per_update",
        "updates",
        "minibatches_per_epoch",
        "gradient_steps_per_update",
        "checkpoints",
        "evaluations",
        "timesteps",
        "frames",
        "samples_per_timestep",
        "offline_gradient_steps",
        "may_end_early",
    }
    assert found["vram"] is None
    assert found["speed"] is None
    finding = found["findings"][0]
    assert set(finding) == {"severity", "code", "key", "message", "fix"}
    assert set(finding["fix"]) == {"key", "value"}


def test_parts_sum_to_the_whole() -> None:
    game, config = load_game("duel"), load_config(CONFIGS / "fighter_32gb.yaml")
    found = preflight(config, game, WORKSTATION).to_json()
    for name, total in (("ram", "predicted_peak_bytes"), ("vram", "predicted_peak_bytes")):
        assert sum(part["bytes"] for part in found[name]["parts"]) == found[name][total]
    disk = found["disk"]
    assert sum(part["bytes"] for part in disk["parts"]) == disk["predicted_total_bytes"]


def test_the_32_gb_run_has_the_numbers_of_lean_storage() -> None:
    game, config = load_game("duel"), load_config(CONFIGS / "fighter_32gb.yaml")
    report = preflight(config, game, WORKSTATION)
    found = report.to_json()
    assert found["verdict"] == "fits"
    ram = {part["name"]: part["bytes"] for part in found["ram"]["parts"]}
    assert ram["rollout buffer"] == 2 * (8_192 + 3) * 5_760 + 16_384 * 32  # SB3's takes 4.5 GB
    assert found["ram"]["predicted_peak_bytes"] < 2e9
    vram = {part["name"]: part["bytes"] for part in found["vram"]["parts"]}
    # bytes as they came and in blocks, and numbers of two bytes, of which all weights but those of
    # the two heads have a copy
    assert vram["gradient step"] == 2048 * (2 + 2) * 276_480 + 2 * (7_440_042 - 513 * (9 + 1))
    assert found["vram"]["predicted_peak_bytes"] < 16e9 / 3
    assert report.footprint.disk.checkpoint_bytes == pytest.approx(90.0e6, rel=0.01)
    assert found["training"] == {
        "timesteps_per_update": 16_384,
        "updates": 611,
        "minibatches_per_epoch": 8,
        "gradient_steps_per_update": 80,
        "checkpoints": 62,  # 61 periodic ones and the end, at timestep 10,010,624
        "evaluations": 62,
        "timesteps": 10_010_624,
        "frames": 40_042_496,
        "samples_per_timestep": None,
        "offline_gradient_steps": 0,
        "may_end_early": False,
    }
    codes = {finding["code"] for finding in found["findings"]}
    assert {"n_steps_is_no_episode_length", "machine_under_used"} <= codes


def test_a_run_that_may_end_early_takes_at_most_what_its_total_takes() -> None:
    measured = MeasuredSpeed(
        inference_s=0.02,
        emulation_s=0.02,
        gradient_step_s=0.02,
        evaluation_vec_step_s=0.01,
        checkpoint_s=0.1,
        start_s=2,
    )

    def text(**stop_when: float) -> str:
        config = make_config(stop_when=stop_when or None)
        return " ".join(text_of(report_of(config, FACTS, MACHINE, measured=measured)).split())

    assert "at most" not in text()
    long, short = text(success_rate=0.95, hours=1_000), text(hours=0.5)
    for said in (long, short):
        assert "at most 489 updates" in said
        assert "at most 1,001,472 timesteps" in said
        assert re.search(r"disk \S+ at most [\d.]+ MiB of 250 GiB", said)
    assert re.search(r"timesteps/s, at most \d+ h \d+ min", long)
    assert "timesteps/s, at most 30 min of training" in short


RUNS = [path for path in sorted(CONFIGS.glob("*.yaml")) if config_kind(path) is None]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_config_that_we_ship_fits_the_machine_of_the_analysis(path: Path) -> None:
    config = load_config(path)
    if "_explored_" in path.stem:  # nobody has explored here, which is an error
        env = config.env.model_copy(update={"pool": None, "rewards": {}})
        config = config.model_copy(update={"env": env})
    report = preflight(config, load_game(config.game), WORKSTATION)
    assert report.verdict == "fits"
    assert not [finding for finding in report.findings if finding.severity == "error"]


def test_a_person_reads_the_verdict_first_and_how_to_mend_it_last() -> None:
    config = make_config(algorithm={"n_steps": 4096, "batch_size": 4096})
    small = Machine(**{**vars(MACHINE), "ram_available_bytes": 3 * GIB // 2})
    lines = text_of(report_of(config, FACTS, small)).splitlines()
    assert lines[0].startswith("DOES NOT FIT")
    assert any(line.startswith("RAM") and "1.50 GiB" in line for line in lines)
    assert any("→ --set algorithm." in line for line in lines)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_table_keeps_its_numbers_at_any_width(width: int) -> None:
    report = report_of(make_config(), FACTS, MACHINE)
    text = text_of(report, width)
    assert "FITS" in text
    assert "network and optimiser" in text
    assert "while a checkpoint is written" in text


def test_a_measured_machine_tells_how_long_the_run_takes() -> None:
    measured = MeasuredSpeed(
        inference_s=0.002,
        emulation_s=0.004,
        gradient_step_s=0.030,
        evaluation_vec_step_s=0.003,
        checkpoint_s=0.050,
        start_s=1.5,
    )
    lengths = EpisodeLengths(timesteps=(50, 150, 100))
    report = report_of(make_config(), FACTS, MACHINE, probe=lengths, measured=measured)
    speed = report.to_json()["speed"]
    assert set(speed) == {"timesteps_per_s", "wall_s", "seconds"}
    assert sum(speed["seconds"].values()) == pytest.approx(speed["wall_s"])
    # 489 updates of 8 x 256 timesteps and 32 gradient steps; 20 evaluations of 2 x 5 x 100
    assert speed["seconds"]["inference"] == pytest.approx(489 * 256 * 0.002)
    assert speed["seconds"]["update"] == pytest.approx(489 * 32 * 0.030)
    assert speed["seconds"]["evaluation"] == pytest.approx((20 * 2 * 5 + 25) * 100 * 0.003)
    lines = text_of(report, width=80).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("speed"))
    assert lines[first] == "speed     about 770 timesteps/s, 21 min 41 s"
    assert lines[first + 1].strip() == (
        "collecting 58% (network 19%, emulators 38%), updating 36%, evaluating 5%"
    )


def test_the_footprint_says_how_far_the_forecast_was_off() -> None:
    report = report_of(make_config(), FACTS, MACHINE)
    predicted = report.footprint.ram.peak.bytes
    footprint = compare_footprint(report, ram_peak_bytes=2 * predicted, disk_bytes=0)
    assert footprint["ram_peak_bytes"] == {
        "predicted": predicted,
        "measured": 2 * predicted,
        "error": -0.5,
    }
    line = footprint_line(footprint)
    assert line.startswith("RAM ")
    assert "predicted (50.0 % less than measured)" in line


def test_facts_come_from_the_game_and_the_machine() -> None:
    game = load_game("duel")
    facts = run_facts(make_config(), game, MACHINE)
    assert facts.n_actions == len(game.action_names)
    assert facts.rom_bytes == len(game.rom.data)
    assert facts.four_shades
    assert not facts.uses_gpu
    assert run_facts(make_config(), game, WORKSTATION).uses_gpu
    assert not run_facts(make_config(device="cpu"), game, WORKSTATION).uses_gpu
    assert run_facts(make_config(device="cuda:1"), game, MACHINE).uses_gpu


def test_a_crop_too_small_for_the_network_is_a_config_error() -> None:
    game = load_game("duel")
    area = game.definition.observation
    crop = area.crop.model_copy(update={"height": 40, "width": 160})
    definition = game.definition.model_copy(
        update={"observation": area.model_copy(update={"crop": crop})}
    )
    small = type(game)(**{**vars(game), "definition": definition})
    with pytest.raises(ConfigError, match="80x20"):
        run_facts(make_config(), small, MACHINE)


@pytest.mark.slow
def test_a_preflight_does_not_import_torch() -> None:
    code = (
        "import sys\n"
        "import game_rl.preflight.preflight, game_rl.preflight.random_play\n"
        "print({'torch', 'stable_baselines3'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, encoding="utf-8"
    )
    assert ended.stdout.strip() == "set()"
