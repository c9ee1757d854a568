"""Mistakes in the section `algorithm`."""

from tests.config.wrong_configs.wrong_config import WrongConfig, valid_and

ALGORITHMS = (
    WrongConfig(
        "an algorithm that does not exist of dqn or pqn",
        valid_and("algorithm: {name: dqnn, learning_starts: 5}\n"),
        ("line 4", "algorithm.name: found dqnn", "ppo or dqn or pqn", "did you mean dqn?"),
    ),
    WrongConfig(
        "a key of another algorithm",
        valid_and("algorithm:\n  learning_starts: 5\n"),
        ("line 5", "algorithm.learning_starts", "it belongs to `name: dqn`; remove it"),
    ),
    WrongConfig(
        "a key of two other algorithms",
        valid_and("algorithm: {exploration: {end: 0.1}}\n"),
        ("line 4", "algorithm.exploration", "it belongs to `name: dqn` and `name: pqn`"),
    ),
    WrongConfig(
        "a slip in a key of the algorithm that is meant",
        valid_and("algorithm: {name: dqn, n_stps: 3}\n"),
        ("line 4", "algorithm.n_stps: unknown key; did you mean n_step?", "replay, n_step"),
    ),
    WrongConfig(
        "a slip in the replay",
        valid_and("algorithm: {name: dqn, replay: {capcity: 5}}\n"),
        ("line 4", "algorithm.replay.capcity", "did you mean capacity?", "capacity, device"),
    ),
    WrongConfig(
        "a batch larger than the replay",
        valid_and("algorithm: {name: dqn, batch_size: 500, replay: {capacity: 100}}\n"),
        ("line 4", "algorithm.batch_size: 500 is more than the replay holds, 100", "at most 100"),
    ),
    WrongConfig(
        "a replay with less than a return for each env",
        valid_and("algorithm: {name: dqn, batch_size: 1, n_step: 3, replay: {capacity: 31}}\n"),
        ("line 4", "algorithm.replay.capacity: 31 is too few", "8 envs", "use at least 32"),
    ),
    WrongConfig(
        "learning that starts after the end",
        valid_and("algorithm: {name: dqn, learning_starts: 400_001}\n"),
        ("line 4", "algorithm.learning_starts: 400,001 is more than total_timesteps, 400,000"),
    ),
    WrongConfig(
        "a teacher of ppo",
        valid_and("algorithm:\n  n_steps: 64\n  teacher: {run: runs/duel_pqn}\n"),
        ("line 6", "algorithm.teacher", "it belongs to `name: dqn`; remove it, or write that"),
    ),
    WrongConfig(
        "a teacher without a run",
        valid_and("algorithm:\n  name: dqn\n  teacher: {weight: 2.0}\n"),
        (
            "line 6",
            "algorithm.teacher.run: missing",
        ),
    ),
    WrongConfig(
        "a weight of a teacher below zero",
        valid_and("algorithm:\n  name: dqn\n  teacher: {run: runs/duel_pqn, weight: -1}\n"),
        (
            "line 6",
            "algorithm.teacher.weight: found -1",
        ),
    ),
    WrongConfig(
        "exploration that begins again after the end",
        valid_and(
            "algorithm:\n  name: pqn\n  exploration:\n    restarts:\n"
            "      - {at: 400_000, start: 0.3, over: 5}\n"
        ),
        ("line 8", "algorithm.exploration.restarts.0.at", "total_timesteps: 400,000", "a smaller"),
    ),
    WrongConfig(
        "restarts of exploration in the wrong order",
        valid_and(
            "algorithm:\n  name: dqn\n  exploration:\n    restarts:\n"
            "      - {at: 90_000, start: 0.3, over: 5}\n"
            "      - {at: 80_000, start: 0.3, over: 5}\n"
        ),
        ("line 9", "exploration.restarts.1.at: 80,000 is not after", "write the earliest first"),
    ),
    WrongConfig(
        "restarts of exploration that overlap",
        valid_and(
            "algorithm:\n  name: dqn\n  exploration:\n    restarts:\n"
            "      - {at: 80_000, start: 0.3, over: 10_000}\n"
            "      - {at: 85_000, start: 0.3, over: 5}\n"
        ),
        ("line 9", "exploration.restarts.1.at: 85,000 is within", "at least 90,000", "over: 5_000"),
    ),
    WrongConfig(
        "a replay on a GPU beside a network on the CPU",
        valid_and("device: cpu\nalgorithm: {name: dqn, replay: {device: cuda}}\n"),
        ("line 5", "algorithm.replay.device", "write replay: {device: cpu}, or device: auto"),
    ),
    WrongConfig(
        "actions drawn from an algorithm without probabilities",
        valid_and("algorithm: {name: pqn}\nevaluation: {deterministic: false}\n"),
        ("line 5", "evaluation.deterministic: pqn has no probabilities", "write true"),
    ),
    WrongConfig(
        "a batch of pqn that does not divide",
        valid_and("algorithm: {name: pqn, batch_size: 100}\n"),
        ("line 4", "algorithm.batch_size: 100 does not divide n_steps x n_envs", "use 64 or 128"),
    ),
    WrongConfig(
        "a replay of pqn to save",
        valid_and("algorithm: {name: pqn}\ncheckpoints: {save_replay_buffer: true}\n"),
        ("line 5", "checkpoints.save_replay_buffer: pqn is on-policy"),
    ),
    WrongConfig(
        "a lake that is text",
        valid_and("lake: {path: yes}\n"),
        (
            "line 4",
            "lake.path: yes is not a folder; write lake: {} for the folder lake in run_dir",
        ),
    ),
    WrongConfig(
        "a lake without a name",
        valid_and('lake: {path: ""}\n'),
        (
            "line 4",
            "lake.path: names no folder",
        ),
    ),
    WrongConfig(
        "a lake that is a number",
        valid_and("lake: {path: 3}\n"),
        (
            "line 4",
            "lake.path: found 3; allowed: text",
        ),
    ),
    WrongConfig(
        "the feed of an older version",
        valid_and("algorithm: {name: pqn, feed: {lake: true}}\n"),
        (
            "line 4",
            "algorithm.feed: unknown key; write a section lake next to algorithm: `lake: {}`",
        ),
    ),
    WrongConfig(
        "a lake that is no section",
        valid_and("lake: true\n"),
        (
            "line 4",
            "lake: found true",
            "{path: ..., capacity_transitions: ...",
        ),
    ),
    WrongConfig(
        "the replay.lake of an older version",
        valid_and("algorithm: {name: dqn, replay: {lake: true}}\n"),
        (
            "line 4",
            "algorithm.replay.lake: unknown key; write a section lake next to algorithm",
        ),
    ),
    WrongConfig(
        "a slip in what happens on a full disk",
        valid_and("lake: {on_full: delete}\n"),
        (
            "line 4",
            "lake.on_full: found delete",
            "one of pause, evict",
        ),
    ),
    WrongConfig(
        "a capacity of a lake of nothing",
        valid_and("lake: {capacity_gb: 0}\n"),
        (
            "line 4",
            "lake.capacity_gb: found 0",
            "from 0.01 to 1_000_000",
        ),
    ),
    WrongConfig(
        "a lake that cannot fill the replay again",
        valid_and("algorithm: {name: dqn}\nlake: {capacity_transitions: 150_000}\n"),
        (
            "line 5",
            "lake.capacity_transitions: 150,000 is less than twice",
            "at least 200,000",
        ),
    ),
    WrongConfig(
        "the capacity of a lake of an older version",
        valid_and("algorithm: {name: dqn, replay: {lake_capacity_gb: 5}}\n"),
        (
            "line 4",
            "algorithm.replay.lake_capacity_gb: unknown key",
            "write lake: {capacity_gb: 20}",
        ),
    ),
    WrongConfig(
        "a replay saved twice",
        valid_and("algorithm: {name: dqn}\nlake: {}\ncheckpoints: {save_replay_buffer: true}\n"),
        (
            "line 6",
            "checkpoints.save_replay_buffer: the Lake keeps the replay already",
        ),
    ),
    WrongConfig(
        "lakes for ppo",
        valid_and("algorithm: {learn_from: {lakes: [runs/other/lake]}}\n"),
        ("line 4", "algorithm.learn_from.lakes", "only `algorithm: {name: dqn}` learns from Lakes"),
    ),
    WrongConfig(
        "nothing of the own play is learned",
        valid_and("algorithm: {name: dqn, learn_from: {lakes: [runs/other/lake], own_share: 0}}\n"),
        ("line 4", "algorithm.learn_from.own_share", "is 0 for the whole run", "--until 0"),
    ),
    WrongConfig(
        "nothing of the lakes is learned",
        valid_and("algorithm: {name: dqn, learn_from: {lakes: [runs/other/lake], own_share: 1}}\n"),
        ("line 4", "algorithm.learn_from.own_share", "is 1 for the whole run", "remove learn_from"),
    ),
    WrongConfig(
        "the run's own lake",
        valid_and("lake: {}\nalgorithm: {name: dqn, learn_from: {lakes: [runs/test/lake]}}\n"),
        ("line 5", "algorithm.learn_from.lakes", "is the Lake that this run writes"),
    ),
    WrongConfig(
        "a lake twice",
        valid_and("algorithm: {name: dqn, learn_from: {lakes: [runs/a, runs/a]}}\n"),
        ("line 4", "algorithm.learn_from.lakes", "is named twice"),
    ),
    WrongConfig(
        "agents whose names overlap",
        valid_and(
            "algorithm: {name: dqn, learn_from: {lakes: [runs/a], agents: {ab: 1, abc: 1}}}\n"
        ),
        ("line 4", "algorithm.learn_from.agents", "ab names the streams that abc names, too"),
    ),
    WrongConfig(
        "agents without a share",
        valid_and("algorithm: {name: dqn, learn_from: {lakes: [runs/a], agents: {b: 0}}}\n"),
        ("line 4", "algorithm.learn_from.agents", "no stream has a share"),
    ),
    WrongConfig(
        "a rhythm faster than the updates of dqn",
        valid_and("algorithm: {name: dqn, train_freq: 100}\nevaluation: {every_timesteps: 700}\n"),
        ("line 5", "less than one rollout, train_freq x n_envs = 800", "algorithm.train_freq"),
    ),
)
