"""Populations and mixtures that have trained on paper."""

from tests.experiments.conftest import make_mixture as make_mixture
from tests.experiments.conftest import make_population as make_population
