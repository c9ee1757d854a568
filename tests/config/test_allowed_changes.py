"""What each operation allows to change: the answers written down for every key."""

import pytest

from game_rl.config import allowed_changes
from game_rl.config.allowed_changes import FILE_OPERATIONS, OPERATIONS, ROLES, KeyRule, role_of
from game_rl.config.bundled_configs import bundled_configs
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.experiments.study_config import StudyConfig
from game_rl.config.loader import config_kind, load_config
from game_rl.config.strict_model import Role, flat

RULES: dict[str, KeyRule] = {
    "resume": allowed_changes.RESUME,
    "log": allowed_changes.EPISODES,
    "new-episodes": allowed_changes.FORK_EPISODES,
    "new-replay": allowed_changes.FORK_REPLAY,
    "new-best": allowed_changes.FORK_BEST,
    "new-teacher": allowed_changes.FORK_TEACHER,
    "arm": allowed_changes.ARM,
    "lake": allowed_changes.LAKE,
    "teacher": allowed_changes.TEACHER,
    "rows": allowed_changes.LEARNER_ROWS,
    "weights": allowed_changes.LEARNER_WEIGHTS,
    "population": allowed_changes.MEMBER_OF_POPULATION,
    "mixture": allowed_changes.MEMBER_OF_MIXTURE,
    "learner": allowed_changes.LEARNER,
    "study": allowed_changes.RUN_OF_STUDY,
}

ANSWERS = """
new-best new-teacher arm rows:
    game
resume new-episodes new-best new-teacher population mixture learner study:
    seed
arm population mixture learner:
    total_timesteps evaluation.every_timesteps evaluation.episodes evaluation.seed
arm population mixture learner study:
    stop_when
population mixture learner study:
    run_dir
arm:
    device algorithm.n_steps algorithm.batch_size algorithm.micro_batch_size algorithm.n_epochs
    algorithm.learning_rate algorithm.clip_range algorithm.clip_range_vf algorithm.gamma
    algorithm.gae_lambda algorithm.normalize_advantage algorithm.ent_coef algorithm.vf_coef
    algorithm.max_grad_norm algorithm.target_kl algorithm.precision algorithm.replay.device
    algorithm.n_step algorithm.double_q algorithm.learning_starts algorithm.train_freq
    algorithm.gradient_steps algorithm.target_update_interval algorithm.tau
    algorithm.exploration algorithm.learn_from algorithm.learn_from.own_share
    algorithm.learn_from.offline algorithm.learn_from.offline.evaluate_every_gradient_steps
    algorithm.learn_from.follow_every_s algorithm.q_lambda evaluation.final_episodes
    algorithm.learn_from.played algorithm.learn_from.played.imitate algorithm.memory.sequence
    algorithm.memory.init algorithm.curiosity algorithm.curiosity.kind algorithm.curiosity.coef
    algorithm.curiosity.gamma
    evaluation.n_envs evaluation.deterministic checkpoints.every_timesteps callbacks env.pool
resume arm mixture learner:
    fork
resume log new-episodes new-replay arm:
    env.n_envs
none:
    env.n_workers env.worker_timeout_s algorithm.stats_window_size
    algorithm.learn_from.offline.save_every_gradient_steps algorithm.learn_from.cache_mb
    evaluation.baselines checkpoints.keep_last checkpoints.keep_every_timesteps
    checkpoints.deadline_s recording episodes monitoring live logging upload
resume log new-episodes new-replay new-best new-teacher arm lake teacher rows:
    env.frame_skip env.frame_stack env.observation env.wrappers
resume log new-episodes new-best new-teacher arm:
    env.max_episode_timesteps env.start_states env.max_idle_frames
resume log new-episodes new-best new-teacher arm lake rows:
    env.rewards
resume log new-episodes new-replay new-best new-teacher arm lake rows:
    env.sticky_actions
resume new-replay new-teacher arm:
    algorithm.name
arm weights:
    algorithm.reward
resume arm weights:
    algorithm.network algorithm.layer_norm
    algorithm.memory algorithm.memory.kind algorithm.memory.size algorithm.memory.layers
new-replay arm:
    algorithm.replay.capacity
resume arm:
    algorithm.learn_from.played.episodes algorithm.learn_from.played.clone
resume arm learner:
    algorithm.teacher algorithm.learn_from.offline.gradient_steps
arm learner:
    algorithm.learn_from.lakes algorithm.learn_from.agents checkpoints.save_replay_buffer
    algorithm.teacher.weight algorithm.teacher.until algorithm.teacher.keep_if_better
arm mixture learner:
    lake lake.capacity_transitions lake.capacity_gb lake.on_full lake.seal_every_timesteps
mixture learner:
    lake.path lake.compression_level
resume new-best new-teacher arm lake teacher rows:
    game.actions game.parts
new-replay new-best new-teacher arm lake teacher rows:
    game.step
resume new-teacher arm learner:
    algorithm.teacher.run algorithm.teacher.temperature
new-best new-teacher arm lake rows:
    game.hardware game.rewards game.reward game.endings game.place
new-best new-teacher arm lake teacher rows:
    game.observation
"""
"""The operations that bind a key, and below them the keys."""


def answers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    operations: set[str] = set()
    for line in ANSWERS.strip().splitlines():
        if line.endswith(":"):
            operations = set(line.removesuffix(":").split()) - {"none"}
        else:
            found |= dict.fromkeys(line.split(), operations)
    return found


def test_every_operation_answers_as_written_down_for_every_key() -> None:
    now = {
        key: {name for name, rule in RULES.items() if rule.reason(key) is not None}
        for key in answers()
    }
    assert now == answers()


def test_every_key_with_a_role_or_an_exception_has_an_answer() -> None:
    exceptions = (key for rule in OPERATIONS.values() for key in (*rule.bound, *rule.free))
    assert set(answers()) == {*ROLES, *exceptions}


def test_every_exception_is_a_key_that_exists_or_is_of_the_game_file() -> None:
    for rule in OPERATIONS.values():
        for key in (*rule.bound, *rule.free):
            role_of(key)
            exists = any(f"{known}.".startswith(f"{key}.") for known in ROLES)
            is_below = key.startswith(("game.", "algorithm.teacher."))
            assert exists or is_below, key


def test_an_exception_differs_from_what_its_role_says() -> None:
    for rule in OPERATIONS.values():
        for key in rule.free:
            above = [known for known in rule.bound if key.startswith(f"{known}.")]
            assert above or role_of(key) in rule.roles, key


def test_what_is_below_a_key_has_its_role_and_its_answer() -> None:
    assert role_of("env.start_states.shore") is role_of("env.start_states") is Role.GAME
    assert role_of("algorithm.network.my_net:Net.width") is Role.NETWORK
    assert allowed_changes.RESUME.reason("env.n_workers") is None
    assert allowed_changes.RESUME.reason("env.max_episode_timesteps.most") is not None
    assert allowed_changes.RESUME.reason("algorithm.teacher.run") is not None
    assert allowed_changes.RESUME.reason("algorithm.teacher.weight") is None


@pytest.mark.parametrize("name", list(bundled_configs()))
def test_every_key_of_every_config_has_a_role(name: str) -> None:
    file = bundled_configs()[name]
    if config_kind(file) is None:
        for key in flat(load_config(file).model_dump(mode="json")):
            assert isinstance(role_of(key), Role), key


FREE_IN_FILES = {
    "Resume an experiment": {
        *("executor", "keep_generations", "keep_rounds", "champion", "upload"),
    },
    "Compare: files of experiments": {
        *("seed", "run_dir", "upload", "executor", "keep_generations", "keep_rounds"),
    },
    "Study: its file": {"executor", "run_dir"},
}


def test_keys_of_experiments_and_studies_are_bound_but_for_those_written_down() -> None:
    assert {*FREE_IN_FILES} == {*FILE_OPERATIONS}
    files = {**PopulationConfig.model_fields, **MixtureConfig.model_fields}
    for title, rule in FILE_OPERATIONS.items():
        keys = {*(StudyConfig.model_fields if title.startswith("Study") else files)}
        assert {key for key in keys if not rule.binds(key)} == FREE_IN_FILES[title], title
        assert {key for key in keys if not rule.binds(f"{key}.below")} == FREE_IN_FILES[title]
    assert FILE_OPERATIONS["Resume an experiment"].binds("member.upload.to")


def test_bound_keys_are_listed_without_those_below_them() -> None:
    found = allowed_changes.MEMBER_OF_MIXTURE.bound_keys()
    assert "lake" in found
    assert "lake.capacity_gb" not in found
    assert found[0] == "run_dir"
    assert "evaluation.final_episodes" not in found
