"""The gradient of parts that threads compute against the whole minibatch's."""

import copy
import os
import pickle
import signal
import threading
from itertools import chain

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from game_rl.algorithms.data_parallel import Threads, data_parallel, torch_threads
from game_rl.algorithms.policies import LeanCnnPolicy
from game_rl.system.placement import Precision

CPU = torch.device("cpu")
N_SAMPLES = 200


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 30), nn.Tanh(), nn.Linear(30, 1))


def whole_gradient(model: nn.Module, samples: torch.Tensor) -> list[torch.Tensor]:
    model(samples).square().sum().backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


@given(
    n_threads=st.integers(1, 4),
    n_samples=st.integers(1, N_SAMPLES),
    micro_batch_size=st.integers(1, N_SAMPLES),
)
def test_the_parts_add_up_to_the_whole(
    n_threads: int, n_samples: int, micro_batch_size: int
) -> None:
    samples = torch.randn(n_samples, 12)
    expected = whole_gradient(network(), samples)
    model, seen = network(), []

    def loss_of(part: slice) -> tuple[torch.Tensor, list[int]]:
        seen.append(torch.get_num_threads())
        return model(samples[part]).square().sum(), list(range(n_samples))[part]

    with torch_threads(n_threads), data_parallel(model.parameters(), CPU, Threads()) as parallel:
        reports = parallel.gradient(loss_of, n_samples=n_samples, micro_batch_size=micro_batch_size)
    assert list(chain.from_iterable(reports)) == list(range(n_samples))
    assert max(map(len, reports)) <= micro_batch_size
    assert set(seen) == {1}
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-4)


def test_all_threads_work_at_once() -> None:
    model, samples = network(), torch.randn(N_SAMPLES, 12)
    together = threading.Barrier(3)

    def loss_of(part: slice) -> tuple[torch.Tensor, None]:
        together.wait(60)
        return model(samples[part]).sum(), None

    with torch_threads(3), data_parallel(model.parameters(), CPU, Threads()) as parallel:
        parallel.gradient(loss_of, n_samples=N_SAMPLES, micro_batch_size=N_SAMPLES)
        assert torch.get_num_threads() == 1
    assert not together.broken


def gradients_with_last(part_number: int, samples: torch.Tensor) -> list[torch.Tensor | None]:
    """Of three parts, of which this one begins when the others are done."""
    model, others = network(), threading.Semaphore(0)

    def loss_of(part: slice) -> tuple[torch.Tensor, None]:
        if part.start == part_number * N_SAMPLES // 3:
            assert all(others.acquire(timeout=60) for _ in range(2))
        loss = model(samples[part]).square().sum()
        others.release()
        return loss, None

    with torch_threads(3), data_parallel(model.parameters(), CPU, Threads()) as parallel:
        parallel.gradient(loss_of, n_samples=N_SAMPLES, micro_batch_size=N_SAMPLES)
    return [parameter.grad for parameter in model.parameters()]


def test_the_sum_does_not_depend_on_who_is_first() -> None:
    samples = torch.randn(N_SAMPLES, 12)
    first, *others = (gradients_with_last(part, samples) for part in range(3))
    for gradients in others:
        assert all(map(torch.equal, gradients, first))


def test_what_a_thread_raises_arrives_and_threads_are_as_before() -> None:
    def loss_of(part: slice) -> tuple[torch.Tensor, None]:
        raise FloatingPointError(part)

    with torch_threads(2):
        with (
            pytest.raises(FloatingPointError),
            data_parallel(network().parameters(), CPU, Threads()) as parallel,
        ):
            parallel.gradient(loss_of, n_samples=N_SAMPLES, micro_batch_size=N_SAMPLES)
        assert torch.get_num_threads() == 2


def test_the_same_threads_work_for_one_update_after_another() -> None:
    model, samples, threads = network(), torch.randn(N_SAMPLES, 12), Threads()
    together = threading.Barrier(3)

    def update() -> set[int]:
        seen = set()

        def loss_of(part: slice) -> tuple[torch.Tensor, None]:
            together.wait(60)
            seen.add(threading.get_ident())
            return model(samples[part]).sum(), None

        with torch_threads(3), data_parallel(model.parameters(), CPU, threads) as parallel:
            parallel.gradient(loss_of, n_samples=N_SAMPLES, micro_batch_size=N_SAMPLES)
        return seen

    first = update()
    assert len(first) == 3
    assert [update() for _ in range(3)] == [first] * 3


def test_a_minibatch_for_one_thread_starts_none() -> None:
    model, samples, seen = network(), torch.randn(32, 12), set()

    def loss_of(part: slice) -> tuple[torch.Tensor, None]:
        seen.add((threading.get_ident(), torch.get_num_threads()))
        return model(samples[part]).sum(), None

    with torch_threads(3), data_parallel(model.parameters(), CPU, Threads()) as parallel:
        parallel.gradient(loss_of, n_samples=32, micro_batch_size=32)
    assert seen == {(threading.get_ident(), 1)}


def thread_of_each_part(threads: Threads) -> set[threading.Thread]:
    together = threading.Barrier(2)

    def its_thread(_: slice) -> threading.Thread:
        together.wait(60)
        return threading.current_thread()

    return set(threads.map(its_thread, [slice(0, 1), slice(1, 2)]))


def test_threads_end_with_their_owner_and_copies_begin_their_own() -> None:
    threads = Threads()
    working = thread_of_each_part(threads)
    sent = pickle.loads(pickle.dumps(threads))  # noqa: S301 - our own
    for other in (copy.deepcopy(threads), sent):
        assert not thread_of_each_part(other) & working
    assert thread_of_each_part(threads) == working
    del threads
    for thread in working:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 of the fork
def test_a_fork_begins_its_own_threads() -> None:
    threads = Threads()
    thread_of_each_part(threads)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a thread that did not survive would be waited for without end
        os._exit(len(thread_of_each_part(threads)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_gradients_have_the_memory_order_of_their_weights() -> None:
    """Autograd may return another one, which a fused optimiser would refuse or pair wrongly."""
    weight = nn.Parameter(torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last))
    factors = torch.randn(N_SAMPLES, *weight.shape)

    def loss_of(part: slice) -> tuple[torch.Tensor, None]:
        return (weight.contiguous() * factors[part]).sum(), None

    assert torch.autograd.grad(loss_of(slice(0, 1))[0], weight)[0].stride() != weight.stride()
    with data_parallel([weight], CPU, Threads()) as parallel:
        parallel.gradient(loss_of, n_samples=N_SAMPLES, micro_batch_size=50)
    assert weight.grad is not None
    assert weight.grad.stride() == weight.stride()
    torch.testing.assert_close(weight.grad, factors.sum(0))


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_a_fused_step_of_the_network_is_that_of_plain_adam(precision: Precision) -> None:
    """The first layer's gradient comes in another memory order than its channels_last weights."""
    space, action_space = spaces.Box(0, 255, (4, 72, 80), np.uint8), spaces.Discrete(9)
    policy = LeanCnnPolicy(space, action_space, lambda _: 1e-3, precision=precision)
    policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub
    pictures = torch.randint(0, 255, (64, *space.shape), dtype=torch.uint8)

    def loss_of(part: slice) -> tuple[torch.Tensor, None]:
        values, log_prob, _ = policy.evaluate_actions(pictures[part], torch.zeros(64)[part])
        return (values - log_prob).sum(), None

    with data_parallel(policy.parameters(), CPU, Threads()) as parallel:
        parallel.gradient(loss_of, n_samples=64, micro_batch_size=64)
    weights = [nn.Parameter(p.detach().clone()) for p in policy.parameters()]
    for weight, parameter in zip(weights, policy.parameters(), strict=True):
        weight.grad = parameter.grad
    torch.optim.Adam(weights, lr=1e-3, eps=1e-5, fused=False).step()
    policy.optimizer.step()
    for weight, parameter in zip(weights, policy.parameters(), strict=True):
        torch.testing.assert_close(parameter, weight, rtol=1e-5, atol=1e-7)
