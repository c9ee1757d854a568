"""The name of a generation in texts, by the kind of experiment."""

STAGES = {"population": "generation", "mixture": "round"}
