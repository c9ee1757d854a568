"""The wrong configs that users write, and what they must be told: cause and fix, key and line."""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class WrongConfig:
    """One mistake.

    Attributes:
        name: of the test.
        content: of the file.
        told: fragments of one line of the message: the place, the dotted key, cause and fix.
        overrides: given with --set.
    """

    name: str
    content: str | bytes
    told: tuple[str, ...]
    overrides: tuple[str, ...] = ()


_VALID = "game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/test\n"


def _with(lines: str) -> str:
    """A config that is right but for these lines, the first of which is line 4."""
    return _VALID + lines


def _set(name: str, override: str, *told: str) -> WrongConfig:
    return WrongConfig(name, _VALID, told, (override,))


_TEXT_AND_STRUCTURE = (
    WrongConfig("empty file", "", ("line 1", "empty", "it needs game, total_timesteps, run_dir")),
    WrongConfig("only a comment", "# later\n", ("empty", "it needs game")),
    WrongConfig("a list at the top", "- game: duel\n", ("line 1", "a list", "`key: value`")),
    WrongConfig("a word at the top", "duel\n", ("only 'duel'", "`key: value`")),
    WrongConfig("no space after a colon", "game:duel\n", ("line 1", "a space after each `:`")),
    WrongConfig("a tab", _with("env:\n\tn_envs: 8\n"), ("line 5", "a tab at column 1", "spaces")),
    WrongConfig("an open bracket", _with("env: {n_envs: 8\n"), ("line 5", "not YAML at column 1")),
    WrongConfig("a wrong indentation", _with("seed: 1\n  env: {}\n"), ("line 5", "indentation")),
    WrongConfig("a colon in text", "game: my: game\n", ("line 1", "second `:`", "in quotes")),
    WrongConfig("latin-1 text", b"game: pok\xe9mon\n", ("line 1", "not UTF-8", "save it as UTF-8")),
    WrongConfig("UTF-16 text", b"\xff\xfeg\x00", ("the text is UTF-16", "save it as UTF-8")),
    WrongConfig("a null byte", "game: du\0el\n", ("line 1", "U+0000", "delete it")),
    WrongConfig(
        "two documents", _with("---\nseed: 1\n"), ("line 4", "second document", "one file")
    ),
    WrongConfig(
        "the same key twice",
        _with("seed: 1\nenv:\n  n_envs: 2\n  n_envs: 4\n"),
        ("line 7", "env.n_envs: written twice, first in line 6", "keep one"),
    ),
    WrongConfig(
        "a python tag",
        _with("seed: !!python/object/apply:os.getpid []\n"),
        ("line 4", "seed: the tag", "delete it"),
    ),
    WrongConfig(
        "a long text a thousand times",
        f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1_000)}]\n",
        ("line 2", "more than 20,000 values"),
    ),
    WrongConfig(
        "a long key a thousand times",
        f"a: &a {{{'x' * 1_000}: 1}}\nb: [{', '.join(['*a'] * 9_000)}]\n",
        ("line 2", "more than 20,000 values"),
    ),
    WrongConfig(
        "a billion laughs",
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
            for before, name in pairwise("abcdefgh")
        ),
        ("more than 20,000 values", "no config"),
    ),
    WrongConfig("an alias of itself", "env: &env [*env]\n", ("line 1", "`*env` refers to nothing")),
    WrongConfig(
        "nested without end", "a: " + "[" * 5_000, ("line 1", "nested too deep", "flatten")
    ),
    WrongConfig(
        "a merge key",
        _with("env: {<<: {n_envs: 8}}\n"),
        ("line 4", "env.<<: unknown key", "write the keys out"),
    ),
)

_KEYS = (
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
        _with("env:\n  num_env: 8\n"),
        ("line 5", "env.num_env: unknown key; did you mean n_envs?", "n_workers, frame_skip"),
    ),
    WrongConfig(
        "a key of another section",
        _with("n_steps: 256\n"),
        ("line 4", "n_steps: unknown key; did you mean algorithm.n_steps?"),
    ),
    WrongConfig(
        "an old name of two things",
        _with("EP_LENGTH: 8192\n"),
        ("line 4", "EP_LENGTH: unknown key", "algorithm.n_steps", "env.max_episode_timesteps"),
    ),
    WrongConfig(
        "another project's name",
        _with("algorithm: {lr: 3e-4}\n"),
        ("line 4", "algorithm.lr: unknown key; did you mean algorithm.learning_rate?"),
    ),
    WrongConfig(
        "an SB3 option that cannot apply",
        _with("algorithm:\n  use_sde: true\n"),
        ("line 5", "algorithm.use_sde", "continuous actions", "remove it"),
    ),
    WrongConfig(
        "an off-policy option",
        _with("algorithm: {buffer_size: 100_000}\n"),
        ("line 4", "algorithm.buffer_size", "no replay buffer", "remove it"),
    ),
    WrongConfig(
        "a frequency in vec steps",
        _with("evaluation: {eval_freq: 1000}\n"),
        ("line 4", "evaluation.eval_freq", "evaluation.every_timesteps", "all envs together"),
    ),
    WrongConfig(
        "color",
        _with("env:\n  observation:\n    color: grey\n"),
        ("line 6", "env.observation.color: unknown key", "env.observation.colour"),
    ),
)

_ALGORITHMS = (
    WrongConfig(
        "an algorithm that does not exist of dqn or pqn",
        _with("algorithm: {name: dqnn, learning_starts: 5}\n"),
        ("line 4", "algorithm.name: found dqnn", "ppo or dqn or pqn", "did you mean dqn?"),
    ),
    WrongConfig(
        "a key of another algorithm",
        _with("algorithm:\n  learning_starts: 5\n"),
        ("line 5", "algorithm.learning_starts", "it belongs to `name: dqn`; remove it"),
    ),
    WrongConfig(
        "a key of two other algorithms",
        _with("algorithm: {exploration: {end: 0.1}}\n"),
        ("line 4", "algorithm.exploration", "it belongs to `name: dqn` and `name: pqn`"),
    ),
    WrongConfig(
        "a slip in a key of the algorithm that is meant",
        _with("algorithm: {name: dqn, n_stps: 3}\n"),
        ("line 4", "algorithm.n_stps: unknown key; did you mean n_step?", "replay, n_step"),
    ),
    WrongConfig(
        "a slip in the replay",
        _with("algorithm: {name: dqn, replay: {capcity: 5}}\n"),
        ("line 4", "algorithm.replay.capcity", "did you mean capacity?", "capacity, device"),
    ),
    WrongConfig(
        "a batch larger than the replay",
        _with("algorithm: {name: dqn, batch_size: 500, replay: {capacity: 100}}\n"),
        ("line 4", "algorithm.batch_size: 500 is more than the replay holds, 100", "at most 100"),
    ),
    WrongConfig(
        "a replay with less than a return for each env",
        _with("algorithm: {name: dqn, batch_size: 1, n_step: 3, replay: {capacity: 31}}\n"),
        ("line 4", "algorithm.replay.capacity: 31 is too few", "8 envs", "use at least 32"),
    ),
    WrongConfig(
        "learning that starts after the end",
        _with("algorithm: {name: dqn, learning_starts: 400_001}\n"),
        ("line 4", "algorithm.learning_starts: 400,001 is more than total_timesteps, 400,000"),
    ),
    WrongConfig(
        "a teacher of ppo",
        _with("algorithm:\n  n_steps: 64\n  teacher: {run: runs/duel_pqn}\n"),
        ("line 6", "algorithm.teacher", "it belongs to `name: dqn`; remove it, or write that"),
    ),
    WrongConfig(
        "a teacher without a run",
        _with("algorithm:\n  name: dqn\n  teacher: {weight: 2.0}\n"),
        (
            "line 6",
            "algorithm.teacher.run: missing",
        ),
    ),
    WrongConfig(
        "a weight of a teacher below zero",
        _with("algorithm:\n  name: dqn\n  teacher: {run: runs/duel_pqn, weight: -1}\n"),
        (
            "line 6",
            "algorithm.teacher.weight: found -1",
        ),
    ),
    WrongConfig(
        "exploration that begins again after the end",
        _with(
            "algorithm:\n  name: pqn\n  exploration:\n    restarts:\n"
            "      - {at: 400_000, start: 0.3, over: 5}\n"
        ),
        ("line 8", "algorithm.exploration.restarts.0.at", "total_timesteps: 400,000", "a smaller"),
    ),
    WrongConfig(
        "restarts of exploration in the wrong order",
        _with(
            "algorithm:\n  name: dqn\n  exploration:\n    restarts:\n"
            "      - {at: 90_000, start: 0.3, over: 5}\n"
            "      - {at: 80_000, start: 0.3, over: 5}\n"
        ),
        ("line 9", "exploration.restarts.1.at: 80,000 is not after", "write the earliest first"),
    ),
    WrongConfig(
        "restarts of exploration that overlap",
        _with(
            "algorithm:\n  name: dqn\n  exploration:\n    restarts:\n"
            "      - {at: 80_000, start: 0.3, over: 10_000}\n"
            "      - {at: 85_000, start: 0.3, over: 5}\n"
        ),
        ("line 9", "exploration.restarts.1.at: 85,000 is within", "at least 90,000", "over: 5_000"),
    ),
    WrongConfig(
        "a replay on a GPU beside a network on the CPU",
        _with("device: cpu\nalgorithm: {name: dqn, replay: {device: cuda}}\n"),
        ("line 5", "algorithm.replay.device", "write replay: {device: cpu}, or device: auto"),
    ),
    WrongConfig(
        "actions drawn from an algorithm without probabilities",
        _with("algorithm: {name: pqn}\nevaluation: {deterministic: false}\n"),
        ("line 5", "evaluation.deterministic: pqn has no probabilities", "write true"),
    ),
    WrongConfig(
        "a batch of pqn that does not divide",
        _with("algorithm: {name: pqn, batch_size: 100}\n"),
        ("line 4", "algorithm.batch_size: 100 does not divide n_steps x n_envs", "use 64 or 128"),
    ),
    WrongConfig(
        "a replay of pqn to save",
        _with("algorithm: {name: pqn}\ncheckpoints: {save_replay_buffer: true}\n"),
        ("line 5", "checkpoints.save_replay_buffer: pqn is on-policy"),
    ),
    WrongConfig(
        "a lake that is text",
        _with("lake: {path: yes}\n"),
        (
            "line 4",
            "lake.path: yes is no folder; write lake: {} for the folder lake in run_dir",
        ),
    ),
    WrongConfig(
        "a lake without a name",
        _with('lake: {path: ""}\n'),
        (
            "line 4",
            "lake.path: names no folder",
        ),
    ),
    WrongConfig(
        "a lake that is a number",
        _with("lake: {path: 3}\n"),
        (
            "line 4",
            "lake.path: found 3; allowed: text",
        ),
    ),
    WrongConfig(
        "the feed of an older version",
        _with("algorithm: {name: pqn, feed: {lake: true}}\n"),
        (
            "line 4",
            "algorithm.feed: unknown key; write a section lake beside algorithm: `lake: {}`",
        ),
    ),
    WrongConfig(
        "a lake that is no section",
        _with("lake: true\n"),
        (
            "line 4",
            "lake: found true",
            "{path: ..., capacity_transitions: ...",
        ),
    ),
    WrongConfig(
        "the replay.lake of an older version",
        _with("algorithm: {name: dqn, replay: {lake: true}}\n"),
        (
            "line 4",
            "algorithm.replay.lake: unknown key; write a section lake beside algorithm",
        ),
    ),
    WrongConfig(
        "a slip in what happens on a full disk",
        _with("lake: {on_full: delete}\n"),
        (
            "line 4",
            "lake.on_full: found delete",
            "one of pause, evict",
        ),
    ),
    WrongConfig(
        "a capacity of a lake of nothing",
        _with("lake: {capacity_gb: 0}\n"),
        (
            "line 4",
            "lake.capacity_gb: found 0",
            "from 0.01 to 1_000_000",
        ),
    ),
    WrongConfig(
        "a lake that cannot fill the replay again",
        _with("algorithm: {name: dqn}\nlake: {capacity_transitions: 150_000}\n"),
        (
            "line 5",
            "lake.capacity_transitions: 150,000 is less than twice",
            "at least 200,000",
        ),
    ),
    WrongConfig(
        "the capacity of a lake of an older version",
        _with("algorithm: {name: dqn, replay: {lake_capacity_gb: 5}}\n"),
        (
            "line 4",
            "algorithm.replay.lake_capacity_gb: unknown key",
            "write lake: {capacity_gb: 20}",
        ),
    ),
    WrongConfig(
        "a replay saved twice",
        _with("algorithm: {name: dqn}\nlake: {}\ncheckpoints: {save_replay_buffer: true}\n"),
        (
            "line 6",
            "checkpoints.save_replay_buffer: the Lake keeps the replay already",
        ),
    ),
    WrongConfig(
        "lakes for ppo",
        _with("algorithm: {learn_from: {lakes: [runs/other/lake]}}\n"),
        ("line 4", "algorithm.learn_from", "only `algorithm: {name: dqn}` learns from Lakes"),
    ),
    WrongConfig(
        "nothing of the own play is learned",
        _with("algorithm: {name: dqn, learn_from: {lakes: [runs/other/lake], own_share: 0}}\n"),
        ("line 4", "algorithm.learn_from.own_share", "is 0 for the whole run", "--until 0"),
    ),
    WrongConfig(
        "nothing of the lakes is learned",
        _with("algorithm: {name: dqn, learn_from: {lakes: [runs/other/lake], own_share: 1}}\n"),
        ("line 4", "algorithm.learn_from.own_share", "is 1 for the whole run", "remove learn_from"),
    ),
    WrongConfig(
        "the run's own lake",
        _with("lake: {}\nalgorithm: {name: dqn, learn_from: {lakes: [runs/test/lake]}}\n"),
        ("line 5", "algorithm.learn_from.lakes", "is the Lake that this run writes"),
    ),
    WrongConfig(
        "a lake twice",
        _with("algorithm: {name: dqn, learn_from: {lakes: [runs/a, runs/a]}}\n"),
        ("line 4", "algorithm.learn_from.lakes", "is named twice"),
    ),
    WrongConfig(
        "agents whose names overlap",
        _with("algorithm: {name: dqn, learn_from: {lakes: [runs/a], agents: {ab: 1, abc: 1}}}\n"),
        ("line 4", "algorithm.learn_from.agents", "ab names the streams that abc names, too"),
    ),
    WrongConfig(
        "agents without a share",
        _with("algorithm: {name: dqn, learn_from: {lakes: [runs/a], agents: {b: 0}}}\n"),
        ("line 4", "algorithm.learn_from.agents", "no stream has a share"),
    ),
    WrongConfig(
        "a rhythm faster than the updates of dqn",
        _with("algorithm: {name: dqn, train_freq: 100}\nevaluation: {every_timesteps: 700}\n"),
        ("line 5", "less than one rollout, train_freq x n_envs = 800", "algorithm.train_freq"),
    ),
)

_VALUES = (
    WrongConfig(
        "gray",
        _with("env: {observation: {colour: gray}}\n"),
        ("line 4", "env.observation.colour: found gray", "one of grey, rgb", "did you mean grey?"),
    ),
    WrongConfig(
        "a fraction",
        _with("env:\n  frame_skip: 8.5\n"),
        ("line 5", "env.frame_skip: found 8.5", "a whole number from 1 to 600"),
    ),
    WrongConfig(
        "a fraction with underscores",
        _with("seed: 1_000.5\n"),
        ("line 4", "seed: found 1_000.5", "a whole number"),
    ),
    WrongConfig(
        "a quoted number",
        _with('env: {n_envs: "8"}\n'),
        ("line 4", 'env.n_envs: found "8"', "the quotes make it text, write 8"),
    ),
    WrongConfig(
        "commas in a number",
        "game: duel\nrun_dir: runs/test\ntotal_timesteps: 400,000\n",
        ("line 3", "total_timesteps: found 400,000", "write 400_000"),
    ),
    WrongConfig("negative", _with("seed: -1\n"), ("line 4", "seed: found -1", "from 0 to")),
    WrongConfig(
        "zero", _with("env: {n_envs: 0}\n"), ("line 4", "env.n_envs: found 0", "from 1 to 1_024")
    ),
    WrongConfig(
        "huge",
        "game: duel\nrun_dir: runs/test\ntotal_timesteps: 1e400\n",
        ("line 3", "total_timesteps: found 1e400", "from 1 to 1_000_000_000_000"),
    ),
    WrongConfig(
        "more digits than Python reads",
        _with("seed: " + "9" * 5_000 + "\n"),
        ("line 4", "seed: found 999", "from 0 to 2_147_483_647"),
    ),
    WrongConfig(
        "not a number",
        _with("algorithm: {gamma: .nan}\n"),
        ("line 4", "algorithm.gamma: found .nan", "a number from 0 to 1"),
    ),
    WrongConfig(
        "infinite",
        _with("algorithm: {max_grad_norm: .inf}\n"),
        ("line 4", "algorithm.max_grad_norm: found .inf", "a number above 0"),
    ),
    WrongConfig(
        "null for a number",
        _with("env:\n  n_envs:\n"),
        ("line 5", "env.n_envs: found nothing", "a whole number", "the default, 8"),
    ),
    WrongConfig(
        "null for a section",
        _with("env:\nseed: 0\n"),
        ("line 4", "env: found nothing", "{n_envs: ..."),
    ),
    WrongConfig(
        "a number for a section",
        _with("algorithm: 3\n"),
        ("line 4", "algorithm: found 3", "{name: ..., n_steps: ..."),
    ),
    WrongConfig(
        "no space after a colon in a section",
        _with("env:\n  n_envs:8\n"),
        ("line 4", "env: found n_envs:8", "a space is missing after the `:`"),
    ),
    WrongConfig(
        "true for a number",
        _with("env: {n_workers: true}\n"),
        ("line 4", "env.n_workers: found true", "a whole number from 1 to 1_024 or null"),
    ),
    WrongConfig(
        "yes for true",
        _with("evaluation: {deterministic: yes}\n"),
        ("line 4", "evaluation.deterministic: found yes", "true or false", "yes is text"),
    ),
    WrongConfig(
        "a slip in auto",
        _with("evaluation: {deterministic: atuo}\n"),
        ("line 4", "evaluation.deterministic: found atuo", "did you mean auto?"),
    ),
    WrongConfig(
        "a number for true",
        _with("evaluation: {deterministic: 1}\n"),
        ("line 4", "evaluation.deterministic: found 1", "true or false"),
    ),
    WrongConfig(
        "a number for text",
        "game: 7\nrun_dir: runs/test\ntotal_timesteps: 400_000\n",
        ("line 1", "game: found 7", "allowed: text"),
    ),
    WrongConfig(
        "a word for a list",
        _with("env: {start_states: level_1}\n"),
        ("line 4", "env.start_states: found level_1", "a list", "write [level_1]"),
    ),
    WrongConfig(
        "an empty list",
        _with("env: {start_states: []}\n"),
        ("line 4", "env.start_states: found a list", "at least 1"),
    ),
    WrongConfig(
        "a wrong item of a list",
        _with("env:\n  start_states:\n    - level_1\n    - 2\n"),
        ("line 7", "env.start_states.1: found 2", "text"),
    ),
    WrongConfig(
        "an algorithm that does not exist",
        _with("algorithm: {name: PPO}\n"),
        ("line 4", "algorithm.name: found PPO", "allowed: ppo", "did you mean ppo?"),
    ),
    WrongConfig(
        "a device that does not exist",
        _with("device: gpu\n"),
        ("line 4", "device: found gpu", "auto, cpu, cuda:0"),
    ),
    WrongConfig(
        "half a schedule",
        _with("algorithm:\n  learning_rate:\n    start: 3e-4\n"),
        ("line 5", "algorithm.learning_rate.end: missing", "a number of at least 0"),
    ),
    WrongConfig(
        "a word for a schedule",
        _with("algorithm: {learning_rate: linear}\n"),
        ("line 4", "algorithm.learning_rate: found linear", "or {start: ..., end: ...}"),
    ),
    WrongConfig(
        "a schedule that begins at 0",
        _with("algorithm: {clip_range: {start: 0, end: 1}}\n"),
        ("line 4", "algorithm.clip_range.start: found 0", "a number above 0"),
    ),
    WrongConfig(
        "a learning rate of 0",
        _with("algorithm: {learning_rate: 0}\n"),
        ("line 4", "algorithm.learning_rate: found 0", "a number above 0"),
    ),
    WrongConfig(
        "a value clip of 0",
        _with("algorithm: {clip_range_vf: 0}\n"),
        ("line 4", "algorithm.clip_range_vf: found 0", "above 0", "or null"),
    ),
    WrongConfig(
        "an entropy schedule",
        _with("algorithm: {ent_coef: {start: 0.1, end: 0}}\n"),
        ("line 4", "algorithm.ent_coef: SB3", "no schedule", "write one number"),
    ),
    WrongConfig(
        "a discount of 99",
        _with("algorithm: {gamma: 99}\n"),
        ("line 4", "algorithm.gamma: found 99", "a number from 0 to 1"),
    ),
    WrongConfig(
        "a run_dir without a name",
        'game: duel\ntotal_timesteps: 400_000\nrun_dir: ""\n',
        ("line 3", "run_dir: names no folder", "for example runs/my_run"),
    ),
)

_DISAGREEMENTS = (
    WrongConfig(
        "micro batch larger than the batch",
        _with("algorithm:\n  batch_size: 64\n  micro_batch_size: 65\n"),
        ("line 6", "algorithm.micro_batch_size: 65 is more than batch_size, 64", "at most 64"),
    ),
    WrongConfig(
        "a batch that does not divide",
        _with("env: {n_envs: 8}\nalgorithm:\n  n_steps: 256\n  batch_size: 300\n"),
        ("line 7", "algorithm.batch_size: 300 does not divide", "256 x 8 = 2,048", "256 or 512"),
    ),
    WrongConfig(
        "a batch larger than the rollout",
        _with("env: {n_envs: 4}\nalgorithm: {n_steps: 256, batch_size: 2048}\n"),
        (
            "line 5",
            "algorithm.batch_size: 2,048 is more",
            "at most 1,024",
            "n_steps of at least 512",
        ),
    ),
    WrongConfig(
        "a batch of one",
        _with("algorithm: {batch_size: 1}\n"),
        ("line 4", "algorithm.batch_size", "cannot be normalised", "at least 2"),
    ),
    WrongConfig(
        "a rollout of one",
        _with("env: {n_envs: 1}\nalgorithm: {n_steps: 1, batch_size: 1}\n"),
        ("line 5", "algorithm.n_steps", "cannot be normalised", "normalize_advantage: false"),
    ),
    WrongConfig(
        "fewer timesteps than a rollout",
        "game: duel\ntotal_timesteps: 1000\nrun_dir: runs/test\n",
        ("line 2", "total_timesteps: 1,000 is less than one rollout", "at least 16,384"),
    ),
    WrongConfig(
        "evaluation within a rollout",
        _with("evaluation: {every_timesteps: 100}\n"),
        ("line 4", "evaluation.every_timesteps: 100 is less", "use at least 16,384"),
    ),
    WrongConfig(
        "checkpoints within a rollout",
        _with("checkpoints:\n  every_timesteps: 100\n"),
        ("line 5", "checkpoints.every_timesteps: 100 is less", "use at least 16,384"),
    ),
    WrongConfig(
        "evaluation without an episode limit",
        _with("env:\n  max_episode_timesteps: null\n"),
        ("line 5", "env.max_episode_timesteps: null", "never end", "for example 1_000"),
    ),
    WrongConfig(
        "a replay buffer for PPO",
        _with("checkpoints: {save_replay_buffer: true}\n"),
        ("line 4", "checkpoints.save_replay_buffer: ppo is on-policy", "remove the line"),
    ),
    WrongConfig(
        "more workers than envs",
        _with("env: {n_envs: 4, n_workers: 6}\n"),
        ("line 4", "env.n_workers: 6 workers for 4 envs", "use at most 4"),
    ),
    WrongConfig(
        "more channels than rows",
        _with("env:\n  frame_stack: 24\n  observation: {colour: rgb}\n"),
        ("line 5", "env.frame_stack: 72 channels", "80x72", "lower env.frame_stack"),
    ),
    WrongConfig(
        "a learning rate without its exponent",
        _with("algorithm: {learning_rate: {start: 2.5, end: 0}}\n"),
        ("line 4", "algorithm.learning_rate.start: 2.5 is more than 1", "the default is 0.0003"),
    ),
)

_OVERRIDES = (
    _set("an override without =", "env.n_envs", "--set env.n_envs ", "--set env.n_envs=16"),
    _set("an override of bytes that are no text", "se\udced=1", "the key is not UTF-8"),
    _set("an override of a thousand parts", "a." * 1_000 + "b=1", "not of the form key=value"),
    _set("an override without a key", "=16", "--set =16", "not of the form key=value"),
    _set(
        "an override of an unknown key",
        "env.num_envs=16",
        "--set env.num_envs=16",
        "env.num_envs: unknown key; did you mean env.n_envs?",
    ),
    _set(
        "an override of an unknown section",
        "enviroment.n_envs=16",
        "enviroment: unknown key; did you mean env?",
    ),
    _set("an override of a wrong kind", "seed=one", "--set seed=one", "seed: found one"),
    _set("an override to nothing", "seed=", "--set seed=", "seed: found nothing", "default, 0"),
    _set("an override that is not YAML", "env={n_envs: 8", "--set env={n_envs: 8", "not YAML"),
    _set("an override below a value", "game.path=x", "game is duel, not a section", "--set game="),
    _set(
        "an override that disagrees with the file",
        "algorithm.batch_size=300",
        "--set algorithm.batch_size=300",
        "300 does not divide",
        "use 256 or 512",
    ),
)

WRONG_CONFIGS = (
    *_TEXT_AND_STRUCTURE,
    *_KEYS,
    *_ALGORITHMS,
    *_VALUES,
    *_DISAGREEMENTS,
    *_OVERRIDES,
)
