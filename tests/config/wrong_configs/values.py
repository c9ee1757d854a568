"""Values that do not exist, and values that do not go together."""

from tests.config.wrong_configs.wrong_config import WrongConfig, valid_and

VALUES = (
    WrongConfig(
        "gray",
        valid_and("env: {observation: {colour: gray}}\n"),
        ("line 4", "env.observation.colour: found gray", "one of grey, rgb", "did you mean grey?"),
    ),
    WrongConfig(
        "a fraction",
        valid_and("env:\n  frame_skip: 8.5\n"),
        ("line 5", "env.frame_skip: found 8.5", "a whole number from 1 to 600"),
    ),
    WrongConfig(
        "a fraction with underscores",
        valid_and("seed: 1_000.5\n"),
        ("line 4", "seed: found 1_000.5", "a whole number"),
    ),
    WrongConfig(
        "a quoted number",
        valid_and('env: {n_envs: "8"}\n'),
        ("line 4", 'env.n_envs: found "8"', "the quotes make it text, write 8"),
    ),
    WrongConfig(
        "commas in a number",
        "game: duel\nrun_dir: runs/test\ntotal_timesteps: 400,000\n",
        ("line 3", "total_timesteps: found 400,000", "write 400_000"),
    ),
    WrongConfig("negative", valid_and("seed: -1\n"), ("line 4", "seed: found -1", "from 0 to")),
    WrongConfig(
        "zero",
        valid_and("env: {n_envs: 0}\n"),
        ("line 4", "env.n_envs: found 0", "from 1 to 1_024"),
    ),
    WrongConfig(
        "huge",
        "game: duel\nrun_dir: runs/test\ntotal_timesteps: 1e400\n",
        ("line 3", "total_timesteps: found 1e400", "from 1 to 1_000_000_000_000"),
    ),
    WrongConfig(
        "more digits than Python reads",
        valid_and("seed: " + "9" * 5_000 + "\n"),
        ("line 4", "seed: found 999", "from 0 to 2_147_483_647"),
    ),
    WrongConfig(
        "not a number",
        valid_and("algorithm: {gamma: .nan}\n"),
        ("line 4", "algorithm.gamma: found .nan", "a number from 0 to 1"),
    ),
    WrongConfig(
        "infinite",
        valid_and("algorithm: {max_grad_norm: .inf}\n"),
        ("line 4", "algorithm.max_grad_norm: found .inf", "a number above 0"),
    ),
    WrongConfig(
        "null for a number",
        valid_and("env:\n  n_envs:\n"),
        ("line 5", "env.n_envs: found nothing", "a whole number", "the default, 8"),
    ),
    WrongConfig(
        "null for a section",
        valid_and("env:\nseed: 0\n"),
        ("line 4", "env: found nothing", "{n_envs: ..."),
    ),
    WrongConfig(
        "the name of an algorithm that is not there for a section",
        valid_and("algorithm: recurrent_ppo\n"),
        ("line 4", "algorithm: found recurrent_ppo", "{name: ppo, ...} or {name: dqn, ...}"),
    ),
    WrongConfig(
        "a number for a section",
        valid_and("algorithm: 3\n"),
        ("line 4", "algorithm: found 3", "{name: ppo, ...} or {name: dqn, ...}"),
    ),
    WrongConfig(
        "no space after a colon in a section",
        valid_and("env:\n  n_envs:8\n"),
        ("line 4", "env: found n_envs:8", "a space is missing after the `:`"),
    ),
    WrongConfig(
        "true for a number",
        valid_and("env: {n_workers: true}\n"),
        ("line 4", "env.n_workers: found true", "a whole number from 1 to 1_024 or null"),
    ),
    WrongConfig(
        "yes for true",
        valid_and("evaluation: {deterministic: yes}\n"),
        ("line 4", "evaluation.deterministic: found yes", "true or false", "yes is text"),
    ),
    WrongConfig(
        "a slip in auto",
        valid_and("evaluation: {deterministic: atuo}\n"),
        ("line 4", "evaluation.deterministic: found atuo", "did you mean auto?"),
    ),
    WrongConfig(
        "a number for true",
        valid_and("evaluation: {deterministic: 1}\n"),
        ("line 4", "evaluation.deterministic: found 1", "true or false"),
    ),
    WrongConfig(
        "a number for text",
        "game: 7\nrun_dir: runs/test\ntotal_timesteps: 400_000\n",
        ("line 1", "game: found 7", "allowed: text"),
    ),
    WrongConfig(
        "a word for a list",
        valid_and("env: {start_states: level_1}\n"),
        ("line 4", "env.start_states: found level_1", "a list", "write [level_1]"),
    ),
    WrongConfig(
        "an empty list",
        valid_and("env: {start_states: []}\n"),
        ("line 4", "env.start_states: found an empty list", "at least 1"),
    ),
    WrongConfig(
        "a wrong item of a list",
        valid_and("env:\n  start_states:\n    - level_1\n    - 2\n"),
        ("line 7", "env.start_states.1: found 2", "text"),
    ),
    WrongConfig(
        "a growing limit whose most is below its start",
        valid_and("env:\n  max_episode_timesteps: {start: 200, add: 10, per: level, most: 100}\n"),
        ("line 5", "env.max_episode_timesteps.most: most is 100, below start, 200"),
    ),
    WrongConfig(
        "a growing limit without a variable",
        valid_and("env:\n  max_episode_timesteps: {start: 200, add: 10, most: 300}\n"),
        ("line 5", "env.max_episode_timesteps.per: missing"),
    ),
    WrongConfig(
        "a growing limit that grows by nothing",
        valid_and("env: {max_episode_timesteps: {start: 2, add: 0, per: level, most: 3}}\n"),
        ("line 4", "env.max_episode_timesteps.add: found 0", "a whole number from 1"),
    ),
    WrongConfig(
        "a weight of nothing",
        valid_and("env:\n  start_states: {level_1: 1, level_2: 0}\n"),
        ("line 5", "env.start_states.level_2: found 0", "above 0"),
    ),
    WrongConfig(
        "no weights",
        valid_and("env: {start_states: {}}\n"),
        ("line 4", "env.start_states: found an empty section", "at least 1"),
    ),
    WrongConfig(
        "a word for a weight",
        valid_and("env: {start_states: {level_1: often}}\n"),
        ("line 4", "env.start_states.level_1: found often", "a number"),
    ),
    WrongConfig(
        "an algorithm that does not exist",
        valid_and("algorithm: {name: PPO}\n"),
        ("line 4", "algorithm.name: found PPO", "allowed: ppo", "did you mean ppo?"),
    ),
    WrongConfig(
        "a device that does not exist",
        valid_and("device: gpu\n"),
        ("line 4", "device: found gpu", "auto, cpu, cuda:0"),
    ),
    WrongConfig(
        "half a schedule",
        valid_and("algorithm:\n  learning_rate:\n    start: 3e-4\n"),
        ("line 5", "algorithm.learning_rate.end: missing", "a number of at least 0"),
    ),
    WrongConfig(
        "a word for a schedule",
        valid_and("algorithm: {learning_rate: linear}\n"),
        ("line 4", "algorithm.learning_rate: found linear", "or {start: ..., end: ...}"),
    ),
    WrongConfig(
        "a schedule that begins at 0",
        valid_and("algorithm: {clip_range: {start: 0, end: 1}}\n"),
        ("line 4", "algorithm.clip_range.start: found 0", "a number above 0"),
    ),
    WrongConfig(
        "a learning rate of 0",
        valid_and("algorithm: {learning_rate: 0}\n"),
        ("line 4", "algorithm.learning_rate: found 0", "a number above 0"),
    ),
    WrongConfig(
        "a value clip of 0",
        valid_and("algorithm: {clip_range_vf: 0}\n"),
        ("line 4", "algorithm.clip_range_vf: found 0", "above 0", "or null"),
    ),
    WrongConfig(
        "an entropy schedule",
        valid_and("algorithm: {ent_coef: {start: 0.1, end: 0}}\n"),
        ("line 4", "algorithm.ent_coef: SB3", "no schedule", "write one number"),
    ),
    WrongConfig(
        "a discount of 99",
        valid_and("algorithm: {gamma: 99}\n"),
        ("line 4", "algorithm.gamma: found 99", "a number from 0 to 1"),
    ),
    WrongConfig(
        "a run_dir without a name",
        'game: duel\ntotal_timesteps: 400_000\nrun_dir: ""\n',
        ("line 3", "run_dir: names no folder", "for example runs/my_run"),
    ),
)

DISAGREEMENTS = (
    WrongConfig(
        "micro batch larger than the batch",
        valid_and("algorithm:\n  batch_size: 64\n  micro_batch_size: 65\n"),
        ("line 6", "algorithm.micro_batch_size: 65 is more than batch_size, 64", "at most 64"),
    ),
    WrongConfig(
        "a batch that does not divide",
        valid_and("env: {n_envs: 8}\nalgorithm:\n  n_steps: 256\n  batch_size: 300\n"),
        ("line 7", "algorithm.batch_size: 300 does not divide", "256 x 8 = 2,048", "256 or 512"),
    ),
    WrongConfig(
        "a batch larger than the rollout",
        valid_and("env: {n_envs: 4}\nalgorithm: {n_steps: 256, batch_size: 2048}\n"),
        (
            "line 5",
            "algorithm.batch_size: 2,048 is more",
            "at most 1,024",
            "n_steps of at least 512",
        ),
    ),
    WrongConfig(
        "a batch of one",
        valid_and("algorithm: {batch_size: 1}\n"),
        ("line 4", "algorithm.batch_size", "cannot be normalised", "at least 2"),
    ),
    WrongConfig(
        "a rollout of one",
        valid_and("env: {n_envs: 1}\nalgorithm: {n_steps: 1, batch_size: 1}\n"),
        ("line 5", "algorithm.n_steps", "cannot be normalised", "normalize_advantage: false"),
    ),
    WrongConfig(
        "fewer timesteps than a rollout",
        "game: duel\ntotal_timesteps: 1000\nrun_dir: runs/test\n",
        ("line 2", "total_timesteps: 1,000 is less than one rollout", "at least 16,384"),
    ),
    WrongConfig(
        "evaluation within a rollout",
        valid_and("evaluation: {every_timesteps: 100}\n"),
        ("line 4", "evaluation.every_timesteps: 100 is less", "use at least 16,384"),
    ),
    WrongConfig(
        "checkpoints within a rollout",
        valid_and("checkpoints:\n  every_timesteps: 100\n"),
        ("line 5", "checkpoints.every_timesteps: 100 is less", "use at least 16,384"),
    ),
    WrongConfig(
        "evaluation without an episode limit",
        valid_and("env:\n  max_episode_timesteps: null\n"),
        ("line 5", "env.max_episode_timesteps: null", "never end", "for example 1_000"),
    ),
    WrongConfig(
        "a replay buffer for PPO",
        valid_and("checkpoints: {save_replay_buffer: true}\n"),
        ("line 4", "checkpoints.save_replay_buffer: ppo is on-policy", "remove the line"),
    ),
    WrongConfig(
        "a run that stops for nothing",
        valid_and("stop_when: {evaluations: 3}\n"),
        ("line 4", "stop_when: has no condition", "write success_rate", "or stop_when: null"),
    ),
    WrongConfig(
        "a success rate in percent",
        valid_and("stop_when:\n  success_rate: 95\n"),
        ("line 5", "stop_when.success_rate: found 95", "a number above 0 and at most 1"),
    ),
    WrongConfig(
        "hours below zero",
        valid_and("stop_when: {hours: -1}\n"),
        ("line 4", "stop_when.hours: found -1", "above 0"),
    ),
    WrongConfig(
        "more workers than envs",
        valid_and("env: {n_envs: 4, n_workers: 6}\n"),
        ("line 4", "env.n_workers: 6 workers for 4 envs", "use at most 4"),
    ),
    WrongConfig(
        "more channels than rows",
        valid_and("env:\n  frame_stack: 24\n  observation: {colour: rgb}\n"),
        ("line 5", "env.frame_stack: 72 channels", "80x72", "lower env.frame_stack"),
    ),
    WrongConfig(
        "a learning rate without its exponent",
        valid_and("algorithm: {learning_rate: {start: 2.5, end: 0}}\n"),
        ("line 4", "algorithm.learning_rate.start: 2.5 is more than 1", "the default is 0.0003"),
    ),
)
