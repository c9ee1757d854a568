"""Every wrong config that the tests know."""

from tests.config.wrong_configs.algorithms import ALGORITHMS
from tests.config.wrong_configs.keys import KEYS, OVERRIDES
from tests.config.wrong_configs.text import TEXTS
from tests.config.wrong_configs.values import DISAGREEMENTS, VALUES

WRONG_CONFIGS = (*TEXTS, *KEYS, *ALGORITHMS, *VALUES, *DISAGREEMENTS, *OVERRIDES)
