"""Torch's optimisers without torch's compiler.

Torch imports its compiler (torch._dynamo, sympy) when the first optimiser is made and when it makes
a step, only to forbid compiling the two: a second and 70 MB for nothing. These leave that out;
their numbers are torch's.
"""

import inspect

import torch
from torch.optim import Optimizer


class _Eager(Optimizer):
    """An optimiser whose methods are those under the marks that forbid to compile them."""

    add_param_group = inspect.unwrap(Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(Optimizer.load_state_dict)
    state_dict = inspect.unwrap(Optimizer.state_dict)
    zero_grad = inspect.unwrap(Optimizer.zero_grad)


class Adam(_Eager, torch.optim.Adam):
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class RAdam(_Eager, torch.optim.RAdam):
    step = torch.no_grad()(inspect.unwrap(torch.optim.RAdam.step))
