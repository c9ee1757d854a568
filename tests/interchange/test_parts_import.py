"""Import of SB3's DictReplayBuffer: every transition, read back from the Lake, is SB3's own."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.save_util import save_to_pkl

from game_rl.cli.main import main
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.games.parts.part_format import PartFormat, Stretch
from game_rl.interchange.replay_export import export_replay
from game_rl.interchange.replay_import import import_replay
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import observation_format_of
from tests.buffers.part_plays import formats, parts_vec_env
from tests.buffers.test_parts import FORM, play
from tests.examples import examples
from tests.lake.plays import everything

Key = tuple[Any, ...]


def played(form: ObservationFormat, *, n_envs: int, size: int, vec_steps: int) -> DictReplayBuffer:
    vec_env = parts_vec_env(form, n_envs=n_envs)
    space = vec_env.observation_space
    assert isinstance(space, spaces.Dict)
    buffer = DictReplayBuffer(size * n_envs, space, vec_env.action_space, "cpu", n_envs=n_envs)
    play(vec_env, vec_steps, buffer.add)
    return buffer


def of_buffer(buffer: DictReplayBuffer) -> list[Key]:
    """Every transition that SB3 would sample, as bytes."""
    found = []
    for row in range(buffer.buffer_size if buffer.full else buffer.pos):
        for env in range(buffer.n_envs):
            done, timeout = buffer.dones[row, env] > 0, buffer.timeouts[row, env] > 0
            found.append(
                (
                    _bytes({name: a[row, env] for name, a in buffer.observations.items()}),
                    _bytes({name: a[row, env] for name, a in buffer.next_observations.items()}),
                    int(buffer.actions[row, env, 0]),
                    float(buffer.rewards[row, env]),
                    bool(done and not timeout),
                )
            )
    return sorted(found)


def of_lake(lake: Lake) -> list[Key]:
    batch, _ = everything(lake.view(), gamma=1)
    seen, following = batch.stacks, batch.next_stacks
    assert isinstance(seen, dict)
    assert isinstance(following, dict)
    return sorted(
        (
            _bytes({name: array[i] for name, array in seen.items()}),
            _bytes({name: array[i] for name, array in following.items()}),
            int(batch.actions[i]),
            float(batch.rewards[i]),
            bool(batch.discounts[i] == 0),
        )
        for i in range(len(batch.rewards))
    )


def _bytes(observation: dict[str, Any]) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, observation[name].tobytes()) for name in sorted(observation))


@settings(max_examples=examples(40))
@given(formats, st.integers(1, 3), st.sampled_from([9, 40]), st.integers(3, 5))
def test_every_transition_of_a_dict_buffer_is_imported_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory,
    form: ObservationFormat,
    n_envs: int,
    size: int,
    protocol: int,
) -> None:
    """Also when the ring went round and begins within an episode."""
    folder = tmp_path_factory.mktemp("import")
    buffer = played(form, n_envs=n_envs, size=size, vec_steps=25)
    (folder / "replay.pkl").write_bytes(pickle.dumps(buffer, protocol=protocol))
    found = import_replay(folder / "replay.pkl", folder / "lake", observation_format=form)
    lake = Lake.open(folder / "lake")
    assert of_lake(lake) == of_buffer(buffer)
    assert found.n_transitions == n_envs * min(25, size)
    assert observation_format_of(lake.schema) == form


def test_an_exported_buffer_of_parts_is_imported_again(tmp_path: Path) -> None:
    save_to_pkl(tmp_path / "a.pkl", played(FORM, n_envs=2, size=30, vec_steps=50))
    import_replay(tmp_path / "a.pkl", tmp_path / "lake", observation_format=FORM)
    export_replay(Lake.open(tmp_path / "lake"), tmp_path / "b.pkl", n_actions=5)
    import_replay(tmp_path / "b.pkl", tmp_path / "again", observation_format=FORM)
    assert of_lake(Lake.open(tmp_path / "again")) == of_lake(Lake.open(tmp_path / "lake"))


def _vectors(size: int, bits: Any = 32) -> ObservationFormat:
    part = PartFormat("vector", (size,), 0, (Stretch(size, bits),))
    return ObservationFormat(None, 1, (("status", part),))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"dicts of arrays \(screen, status, tiles\).*name the config.*--config"),
        (
            {"observation_format": _vectors(5)},
            r"the part screen of its observations is uint8 \[3, 3, 4\], and missing by the config",
        ),
        (
            {"observation_format": FORM, "frame_stack": 3},
            "the config says how many frames are stacked; leave --frame-stack",
        ),
        (
            {"observation_format": ObservationFormat(FramePacking((1, 3, 4)), 3)},
            "the config has no env.observation.parts; leave --config out",
        ),
    ],
)
def test_what_does_not_fit_the_config_is_refused(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save_to_pkl(tmp_path / "r.pkl", played(FORM, n_envs=1, size=8, vec_steps=4))
    with pytest.raises(LakeError, match=message):
        import_replay(tmp_path / "r.pkl", tmp_path / "lake", **arguments)
    assert [p.name for p in tmp_path.iterdir()] == ["r.pkl"]


def test_a_number_where_the_config_has_a_flag_is_refused(tmp_path: Path) -> None:
    save_to_pkl(tmp_path / "r.pkl", played(_vectors(4), n_envs=1, size=8, vec_steps=8))
    message = r"part status of an observation: a value is .* from 0 to 1"
    with pytest.raises(LakeError, match=message):
        import_replay(tmp_path / "r.pkl", tmp_path / "lake", observation_format=_vectors(4, 1))
    assert not (tmp_path / "lake").exists()


def test_a_config_for_a_buffer_of_pictures_is_refused(tmp_path: Path) -> None:
    space = spaces.Box(0, 255, (3, 3, 4), np.uint8)
    save_to_pkl(tmp_path / "r.pkl", ReplayBuffer(8, space, spaces.Discrete(2), "cpu"))
    with pytest.raises(LakeError, match="the part screen of its observations is missing, and uint"):
        import_replay(tmp_path / "r.pkl", tmp_path / "lake", observation_format=FORM)


def test_the_command_takes_the_parts_from_a_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "game: duel\ntotal_timesteps: 2_048\nrun_dir: r\nenv: {n_envs: 1, frame_stack: 1, "
        "observation: {screen: false, parts: [status]}}\n",
        encoding="utf-8",
    )
    space = spaces.Dict({"status": spaces.Box(-np.inf, np.inf, (2,), np.float32)})
    save_to_pkl(tmp_path / "r.pkl", DictReplayBuffer(8, space, spaces.Discrete(2), "cpu"))
    words = ["replay", "import", str(tmp_path / "r.pkl"), "--output", str(tmp_path / "lake")]
    assert main([*words, "--config", str(config)]) != 0
    assert "the part status of its observations is float32 [2], and float32 [" in " ".join(
        capsys.readouterr().err.split()
    )
