"""The finding about a run that learns from others' Lakes and too little from its own play."""

from game_rl.preflight.changes import Fix
from game_rl.preflight.findings import Finding
from game_rl.preflight.learning import has_teacher, learn_from_of
from game_rl.preflight.situation import Situation

_LEAST_OWN_SHARE = 0.1


def few_own_rows(situation: Situation) -> Finding | None:
    """Warn of the tandem effect: 10 to 20 % of own play reduce it much, and 50 % end it."""
    settings = learn_from_of(situation.config)
    if settings is None or has_teacher(situation.config):
        return None
    share = settings.most_own_share
    if share >= _LEAST_OWN_SHARE:
        return None
    return Finding(
        "warning",
        "few_own_rows",
        "algorithm.learn_from.own_share",
        f"at most {share:.0%} of each batch is the run's own play, and there is no teacher: a "
        "network that learns from others' play alone fails where they succeed, since nothing "
        "corrects its values of actions that they do not take (the tandem effect, Ostrovski "
        "et al. 2021, arXiv 2110.14020; 10 to 20 % of own play reduce it much, and 50 % end it)",
        Fix("algorithm.learn_from.own_share", "0.5"),
    )
