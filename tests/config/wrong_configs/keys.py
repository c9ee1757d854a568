"""Keys that do not exist, and overrides of the command line."""

from tests.config.wrong_configs.wrong_config import WrongConfig, overridden, valid_and

KEYS = (
    WrongConfig(
        "a required key is missing",
        "game: duel\nrun_dir: runs/test\n",
        ("line 1", "total_timesteps: missing", "for example `total_timesteps: 400_000`"),
    ),
    WrongConfig(
        "a slip in a required key",
        "game: duel\nrun_dir: runs/test\ntotal_steps: 400_000\n",
        ("line 3", "total_steps: unknown key; did you mean total_timesteps?"),
    ),
    WrongConfig(
        "a slip in a key",
        valid_and("env:\n  num_env: 8\n"),
        ("line 5", "env.num_env: unknown key; did you mean n_envs?", "n_workers, frame_skip"),
    ),
    WrongConfig(
        "a key of another section",
        valid_and("n_steps: 256\n"),
        ("line 4", "n_steps: unknown key; did you mean algorithm.n_steps?"),
    ),
    WrongConfig(
        "an old name of two things",
        valid_and("EP_LENGTH: 8192\n"),
        ("line 4", "EP_LENGTH: unknown key", "algorithm.n_steps", "env.max_episode_timesteps"),
    ),
    WrongConfig(
        "another project's name",
        valid_and("algorithm: {lr: 3e-4}\n"),
        ("line 4", "algorithm.lr: unknown key; did you mean algorithm.learning_rate?"),
    ),
    WrongConfig(
        "an SB3 option that cannot apply",
        valid_and("algorithm:\n  use_sde: true\n"),
        ("line 5", "algorithm.use_sde", "continuous actions", "remove it"),
    ),
    WrongConfig(
        "an off-policy option",
        valid_and("algorithm: {buffer_size: 100_000}\n"),
        ("line 4", "algorithm.buffer_size", "no replay buffer", "remove it"),
    ),
    WrongConfig(
        "a frequency in vec steps",
        valid_and("evaluation: {eval_freq: 1000}\n"),
        ("line 4", "evaluation.eval_freq", "evaluation.every_timesteps", "all envs together"),
    ),
    WrongConfig(
        "color",
        valid_and("env:\n  observation:\n    color: grey\n"),
        ("line 6", "env.observation.color: unknown key", "env.observation.colour"),
    ),
)

OVERRIDES = (
    overridden("an override without =", "env.n_envs", "--set env.n_envs ", "--set env.n_envs=16"),
    overridden("an override of bytes that are no text", "se\udced=1", "the key is not UTF-8"),
    overridden(
        "an override of a thousand parts", "a." * 1_000 + "b=1", "not of the form key=value"
    ),
    overridden("an override without a key", "=16", "--set =16", "not of the form key=value"),
    overridden(
        "an override of an unknown key",
        "env.num_envs=16",
        "--set env.num_envs=16",
        "env.num_envs: unknown key; did you mean env.n_envs?",
    ),
    overridden(
        "an override of an unknown section",
        "enviroment.n_envs=16",
        "enviroment: unknown key; did you mean env?",
    ),
    overridden("an override of a wrong kind", "seed=one", "--set seed=one", "seed: found one"),
    overridden(
        "an override to nothing", "seed=", "--set seed=", "seed: found nothing", "default, 0"
    ),
    overridden(
        "an override that is not YAML", "env={n_envs: 8", "--set env={n_envs: 8", "not YAML"
    ),
    overridden(
        "an override below a value", "game.path=x", "game is duel, not a section", "--set game="
    ),
    overridden(
        "an override that disagrees with the file",
        "algorithm.batch_size=300",
        "--set algorithm.batch_size=300",
        "300 does not divide",
        "use 256 or 512",
    ),
)
