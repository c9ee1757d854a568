"""Texts that are no config: no YAML, or of another structure."""

from itertools import pairwise

from tests.config.wrong_configs.wrong_config import WrongConfig, valid_and

TEXTS = (
    WrongConfig("empty file", "", ("line 1", "empty", "it needs game, total_timesteps, run_dir")),
    WrongConfig("only a comment", "# later\n", ("empty", "it needs game")),
    WrongConfig("a list at the top", "- game: duel\n", ("line 1", "a list", "`key: value`")),
    WrongConfig("a word at the top", "duel\n", ("only 'duel'", "`key: value`")),
    WrongConfig("no space after a colon", "game:duel\n", ("line 1", "a space after each `:`")),
    WrongConfig(
        "a tab", valid_and("env:\n\tn_envs: 8\n"), ("line 5", "a tab at column 1", "spaces")
    ),
    WrongConfig(
        "an open bracket", valid_and("env: {n_envs: 8\n"), ("line 5", "not YAML at column 1")
    ),
    WrongConfig(
        "a wrong indentation", valid_and("seed: 1\n  env: {}\n"), ("line 5", "indentation")
    ),
    WrongConfig("a colon in text", "game: my: game\n", ("line 1", "second `:`", "in quotes")),
    WrongConfig("latin-1 text", b"game: pok\xe9mon\n", ("line 1", "not UTF-8", "save it as UTF-8")),
    WrongConfig("UTF-16 text", b"\xff\xfeg\x00", ("the text is UTF-16", "save it as UTF-8")),
    WrongConfig("a null byte", "game: du\0el\n", ("line 1", "U+0000", "delete it")),
    WrongConfig(
        "two documents", valid_and("---\nseed: 1\n"), ("line 4", "second document", "one file")
    ),
    WrongConfig(
        "the same key twice",
        valid_and("seed: 1\nenv:\n  n_envs: 2\n  n_envs: 4\n"),
        ("line 7", "env.n_envs: written twice, first in line 6", "keep one"),
    ),
    WrongConfig(
        "a python tag",
        valid_and("seed: !!python/object/apply:os.getpid []\n"),
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
        ("more than 20,000 values", "not a config"),
    ),
    WrongConfig("an alias of itself", "env: &env [*env]\n", ("line 1", "`*env` refers to nothing")),
    WrongConfig(
        "nested without end", "a: " + "[" * 5_000, ("line 1", "nested too deep", "flatten")
    ),
    WrongConfig(
        "a merge key",
        valid_and("env: {<<: {n_envs: 8}}\n"),
        ("line 4", "env.<<: unknown key", "write the keys out"),
    ),
)
