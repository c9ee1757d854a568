"""How many examples a property is tried on: "fast" is the profile of `make test`, "full" of CI."""

from hypothesis import settings

N_EXAMPLES = {"fast": 20, "full": 100}

for name, count in N_EXAMPLES.items():
    settings.register_profile(name, deadline=None, max_examples=count)


def examples(full: int) -> int:
    """Return the number for a property that is tried on `full` examples under "full"."""
    return full * settings().max_examples // N_EXAMPLES["full"]
