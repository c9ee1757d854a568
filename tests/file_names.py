"""Names of files that the locale of the tests can have."""

import os


def is_possible(name: str) -> bool:
    """Whether a file can have this name: in a locale in ASCII, none beyond it can."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True
