"""Torch's optimisers without torch's compiler.

Torch imports its compiler (torch._dynamo, sympy) when the first optimiser is created and when it
takes a step, only to forbid compiling the two. That wastes a second and 70 MB. These optimisers
leave the import out and compute the same numbers as torch's.
"""

import inspect

import torch
from torch.optim import Optimizer


class _Eager(Optimizer):
    """An optimiser whose methods are unwrapped from the decorators that forbid compiling them."""

    add_param_group = inspect.unwrap(Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(Optimizer.load_state_dict)
    state_dict = inspect.unwrap(Optimizer.state_dict)
    zero_grad = inspect.unwrap(Optimizer.zero_grad)


class Adam(_Eager, torch.optim.Adam):
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class RAdam(_Eager, torch.optim.RAdam):
    step = torch.no_grad()(inspect.unwrap(torch.optim.RAdam.step))
