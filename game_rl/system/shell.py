"""Command lines that a person can paste into a shell."""

import shlex


def shell_words(*words: object) -> str:
    """Return the words as one command line, each quoted if a shell would split or change it."""
    return shlex.join(map(str, words))
