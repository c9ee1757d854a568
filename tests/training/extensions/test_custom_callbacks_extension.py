"""A callback of a person's own is called as SB3 calls it, named in errors, saved and restored."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList

from game_rl.config.custom_part import PartError, parts_of
from game_rl.features.feature_table import CustomCallbackState, CustomCallbackStates
from game_rl.training.extensions.custom_callbacks_extension import CustomCallback
from tests.callbacks.conftest import N_STEPS

HEAD = """\
from stable_baselines3.common.callbacks import BaseCallback
import numpy as np
import torch
"""
NOTING = """
class Own(BaseCallback):
    def __init__(self, name="own"):
        super().__init__()
        self.name, self.calls = name, []
    def _note(self, what):
        self.calls.append((what, self.n_calls, self.num_timesteps, sorted(self.locals)[:3]))
    def _init_callback(self): self.calls.append(("init", self.model is not None))
    def _on_training_start(self): self._note("training start")
    def _on_rollout_start(self): self._note("rollout start")
    def _on_step(self):
        self._note("step")
        return True
    def _on_rollout_end(self): self._note("rollout end")
    def _on_training_end(self): self._note("training end")
"""
Make = Callable[..., CustomCallback]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(code: str, **arguments: Any) -> CustomCallback:
        (tmp_path / "parts.py").write_text(HEAD + code, encoding="utf-8")
        items = ({"parts:Own": arguments},) if arguments else ("parts:Own",)
        (part,) = parts_of(items, "callbacks")
        return CustomCallback(part, tmp_path, ended.append)

    ended: list[str] = []
    made.ended = ended  # type: ignore[attr-defined]
    return made


def test_it_is_called_as_sb3_calls_it(make: Make, make_model: Callable[..., PPO]) -> None:
    custom = make(NOTING, name="ours")
    bare = type(custom._own)(name="theirs")  # type: ignore[call-arg]
    make_model().learn(4 * N_STEPS, callback=CallbackList([custom]))
    make_model().learn(4 * N_STEPS, callback=CallbackList([bare]))
    assert custom._own.calls == bare.calls  # type: ignore[attr-defined]
    assert [call[0] for call in bare.calls].count("step") == 2 * N_STEPS  # type: ignore[attr-defined]


def test_it_is_initialised_once_for_several_stretches(
    make: Make, make_model: Callable[..., PPO]
) -> None:
    custom, model = make(NOTING), make_model()
    for _ in range(2):
        model.learn(2 * N_STEPS, callback=custom, reset_num_timesteps=False)
    names = [call[0] for call in custom._own.calls]  # type: ignore[attr-defined]
    assert (names.count("init"), names.count("training start")) == (1, 2)


@pytest.mark.parametrize(
    "method",
    ["_init_callback", "_on_training_start", "_on_rollout_start", "_on_step", "_on_rollout_end",
     "_on_training_end", "state_dict"],
)  # fmt: skip
def test_an_error_names_the_class_the_method_and_the_line(
    make: Make, make_model: Callable[..., PPO], tmp_path: Path, method: str
) -> None:
    custom = make(f"""
class Own(BaseCallback):
    def _on_step(self): return True
    def {method}(self):
        raise ValueError('not today')
    def load_state_dict(self, state): ...
""")
    with pytest.raises(PartError) as raised:
        make_model().learn(2 * N_STEPS, callback=custom)
    text = str(raised.value)
    assert text.startswith(f"callbacks.0: parts:Own failed in {method} with ValueError: not today")
    assert f"in {tmp_path / 'parts.py'}, line 8" in text
    assert raised.value.exit_code == 2


def test_an_error_in_its_constructor_names_the_class(make: Make) -> None:
    code = "class Own(BaseCallback):\n    def __init__(self): 1 / 0\n    def _on_step(self): ...\n"
    with pytest.raises(PartError, match=r"callbacks\.0: parts:Own failed in __init__ with Zero"):
        make(code)


def test_false_ends_the_run_once_and_not_in_the_middle_of_a_rollout(
    make: Make, make_model: Callable[..., PPO]
) -> None:
    code = "class Own(BaseCallback):\n    def _on_step(self): return False\n"
    custom, model = make(code), make_model()
    model.learn(2 * N_STEPS, callback=custom)
    assert model.num_timesteps == 2 * N_STEPS
    assert make.ended == ["callbacks.0, parts:Own, returned False"]  # type: ignore[attr-defined]


STATEFUL = """
class Own(BaseCallback):
    def __init__(self):
        super().__init__()
        self.state = {
            "array": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
            "empty": np.zeros((0, 3)),
            "scalar": np.float64(0.1),
            "low": float("-inf"),
            "tensors": (torch.arange(4) / 3, torch.tensor(1.5, dtype=torch.bfloat16)),
            "flags": {1: torch.tensor([True, False]), "none": torch.zeros((0, 2))},
        }
    def _on_step(self): return True
    def state_dict(self): return self.state
    def load_state_dict(self, state): self.state = state
"""


def test_its_state_comes_back_from_the_file_bit_for_bit(
    make: Make, make_model: Callable[..., PPO]
) -> None:
    custom = make(STATEFUL)
    make_model().learn(2 * N_STEPS, callback=custom)
    saved = CustomCallbackState.model_validate_json(custom.saved().model_dump_json())
    other = make(STATEFUL)
    other._own.state = None  # type: ignore[attr-defined]
    other.restore(saved)
    assert other._own.n_calls == custom._own.n_calls == N_STEPS
    ours, theirs = other._own.state, custom._own.state  # type: ignore[attr-defined]
    assert list(ours) == list(theirs)
    for name in ("array", "empty", "scalar"):
        assert type(ours[name]) is type(theirs[name])
        assert ours[name].dtype == theirs[name].dtype
        np.testing.assert_array_equal(ours[name], theirs[name])
    assert ours["low"] == float("-inf")
    pairs = [*zip(ours["tensors"], theirs["tensors"], strict=True)]
    pairs += [(ours["flags"][key], theirs["flags"][key]) for key in (1, "none")]
    for one, two in pairs:
        assert one.dtype == two.dtype
        assert one.shape == two.shape
        assert torch.equal(one, two)


def test_what_is_no_plain_data_is_refused_when_the_training_begins(
    make: Make, make_model: Callable[..., PPO]
) -> None:
    code = STATEFUL.replace('float("-inf")', "{1, 2}")
    with pytest.raises(PartError, match=r"cannot be saved .*its state\['low'\] is of type set"):
        make_model().learn(2 * N_STEPS, callback=make(code))


def test_without_state_dict_nothing_is_saved(make: Make) -> None:
    assert make(NOTING).saved() == CustomCallbackState(callback="parts:Own")


def test_states_are_matched_by_class_in_their_order() -> None:
    states = [
        CustomCallbackState(callback=name, has_state=True, n_calls=number)
        for number, name in enumerate(("a:A", "b:B", "a:A"))
    ]
    saved = CustomCallbackStates(callbacks=tuple(states))
    again = CustomCallbackStates.model_validate(json.loads(saved.model_dump_json()))
    found = again.matched(["b:B", "a:A", "c:C", "a:A", "a:A"])
    assert found == [states[1], states[0], None, states[2], None]
