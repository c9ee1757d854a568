"""What people call the generations of an experiment, by its kind."""

STAGES = {"population": "generation", "mixture": "round"}
