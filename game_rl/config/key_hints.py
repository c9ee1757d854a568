"""What to write in place of keys that a run config does not have: other tools' names, old ones."""

_REPLAY = (
    "did you mean algorithm.replay.capacity, of name: dqn? ppo and pqn have no replay buffer: "
    "remove it"
)
_EXPLORATION = "write algorithm: {exploration: {start: 1.0, end: 0.05, fraction: 0.1}}"
_ENTROPY = "did you mean algorithm.ent_coef?"
_LAKE = (
    "write a section lake next to algorithm: `lake: {}` is the folder lake in run_dir, "
    "`lake: {path: runs/lake}` a folder that several runs write"
)
_LAKE_KEY = "it belongs to the section lake, next to algorithm: write lake: "
_CALLBACKS = "write callbacks: [module:Class], or [{module:Class: {name: value}}] with arguments"
_WRAPPERS = "write env: {wrappers: [module:Class]}, with arguments [{module:Class: {name: value}}]"
_REWARD = (
    "did you mean algorithm.reward, of the rewards that are learned from? write algorithm: "
    "{reward: {normalize: true}}, or {reward: {scale: 0.1, clip: 1.0}}"
)
_NORMALIZED = (
    "write algorithm: {reward: {normalize: true}}, with clip: 10.0 for VecNormalize's clip_reward; "
    "frames are always scaled to 0..1"
)
_EPISODE_OR_ROLLOUT = (
    "it can mean two things: algorithm.n_steps is how many timesteps each env plays between "
    "updates, env.max_episode_timesteps is after how many an episode is cut off"
)

# by the key's name, in lower case with underscores, or by its whole dotted path
KEY_HINTS = {
    "ep_length": _EPISODE_OR_ROLLOUT,
    "episode_length": _EPISODE_OR_ROLLOUT,
    "horizon": _EPISODE_OR_ROLLOUT,
    "num_steps": "did you mean algorithm.n_steps, or total_timesteps?",
    "num_envs": "did you mean env.n_envs?",
    "num_workers": "did you mean env.n_workers?",
    "n_timesteps": "did you mean total_timesteps?",
    "max_steps": "did you mean total_timesteps, or env.max_episode_timesteps?",
    "callback": _CALLBACKS,
    "env.callbacks": _CALLBACKS,
    "env_wrapper": _WRAPPERS,
    "env_wrappers": _WRAPPERS,
    "wrapper": _WRAPPERS,
    "vec_env_wrapper": "frames are stacked by env.frame_stack; " + _WRAPPERS,
    "early_stopping": "write stop_when: {success_rate: 0.95}, or another condition",
    "reward_threshold": "did you mean stop_when.mean_reward?",
    "max_no_improvement_evals": "did you mean stop_when.no_improvement_evaluations?",
    "patience": "did you mean stop_when.no_improvement_evaluations?",
    "max_hours": "did you mean stop_when.hours?",
    "lr": "did you mean algorithm.learning_rate?",
    "epochs": "did you mean algorithm.n_epochs?",
    "minibatch_size": "did you mean algorithm.batch_size?",
    "n_minibatches": (
        "write the size of a batch, algorithm.batch_size: n_steps x n_envs / n_minibatches"
    ),
    "lam": "did you mean algorithm.gae_lambda of ppo, or algorithm.q_lambda of pqn?",
    "entropy_coef": _ENTROPY,
    "entropy_coefficient": _ENTROPY,
    "clip_coef": "did you mean algorithm.clip_range?",
    "repeat_action_probability": "did you mean env.sticky_actions?",
    "action_repeat": "did you mean env.frame_skip?",
    "grayscale": "write env: {observation: {colour: grey}}",
    "greyscale": "write env: {observation: {colour: grey}}",
    "color": "did you mean env.observation.colour (grey or rgb)?",
    "image_size": "write env: {observation: {size: full}} or half; a crop belongs to game.yaml",
    "rom": "the ROM belongs to a game.yaml; write its path as `game`",
    "rom_path": "the ROM belongs to a game.yaml; write its path as `game`",
    "eval_freq": "write evaluation.every_timesteps, in timesteps of all envs together",
    "save_freq": "write checkpoints.every_timesteps, in timesteps of all envs together",
    "n_eval_episodes": "did you mean evaluation.episodes?",
    "policy": "the policy follows from the observation: remove it, or choose algorithm.network",
    "policy_kwargs": "write algorithm: {network: {hidden: [256], features: 512}}",
    "net_arch": "write algorithm: {network: {hidden: [256]}}",
    "features_extractor_class": "write algorithm: {network: my_module:MyExtractor}",
    "use_sde": "it is for continuous actions, and buttons are discrete: remove it",
    "sde_sample_freq": "it is for continuous actions, and buttons are discrete: remove it",
    "tensorboard_log": "write logging: {tensorboard: true}; the files are in run_dir",
    "use_wandb": "write logging: {wandb: {project: NAME}}",
    "monitor_dir": "write logging: {monitor: true}; monitor.csv is in run_dir",
    "loggers": "write logging: {tensorboard: true, csv: true}",
    "log_dir": "did you mean run_dir?",
    "verbose": "progress is always shown: remove it",
    "env.reward": _REWARD,
    "clip_reward": _REWARD,
    "clip_rewards": _REWARD,
    "reward_clip": _REWARD,
    "reward_scale": _REWARD,
    "reward_scaling": _REWARD,
    "norm_reward": _NORMALIZED,
    "env.normalize": _NORMALIZED,
    "normalize_reward": _NORMALIZED,
    "normalize_rewards": _NORMALIZED,
    "vecnormalize": _NORMALIZED,
    "vec_normalize": _NORMALIZED,
    "normalize_images": "frames are always scaled to 0..1: remove it",
    "normalize_observations": "frames are always scaled to 0..1: remove it",
    "buffer_size": _REPLAY,
    "replay_buffer_size": _REPLAY,
    "exploration_fraction": _EXPLORATION,
    "exploration_initial_eps": _EXPLORATION,
    "exploration_final_eps": _EXPLORATION,
    "epsilon": _EXPLORATION,
    "double_dqn": "did you mean algorithm.double_q, of name: dqn?",
    "feed": _LAKE,
    "algorithm.replay.lake": _LAKE,
    "lake_capacity_transitions": _LAKE_KEY + "{capacity_transitions: 1_000_000}",
    "lake_capacity_gb": _LAKE_KEY + "{capacity_gb: 20}",
    "lake_on_full": _LAKE_KEY + "{on_full: evict}",
    "algorithm.learn_from.lakes": (
        "only `algorithm: {name: dqn}` learns from Lakes: ppo and pqn learn from what they have "
        "just played, and from episodes of a person; under algorithm write name: dqn, or remove it"
    ),
    "algorithm.offline": (
        "it belongs to algorithm.learn_from of name: dqn, which also names the Lakes"
    ),
    "<<": "merge keys are YAML 1.1; write the keys out",
}
