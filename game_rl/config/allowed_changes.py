"""What each operation allows to change in a run's config, by the roles of its keys.

Keys of the game file have no roles. Here they are below `game`, such as `game.actions`. Nor have
those of the file of an experiment or a study: of these, all but a few are bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Role, is_below, roles_of

ROLES: Mapping[str, Role] = MappingProxyType(dict(roles_of(RunConfig)))
"""The role of each key that has one, by its dotted name."""


@cache
def role_of(key: str) -> Role:
    """Return the role of a dotted key: its own, or that of the nearest key above that has one."""
    return ROLES[max((known for known in ROLES if is_below(key, (known,))), key=len)]


def role_in_words(key: str) -> str:
    """Return the role of a key for an error about it."""
    return f"its role is {role_of(key).name.lower()}"


@dataclass(frozen=True)
class KeyRule:
    """What an operation asks of the keys of a run's config: some are bound, the others are free.

    An exception holds for the keys below it, too; the longest one that fits a key decides.

    Attributes:
        meaning: what the operation does about bound keys, in a sentence.
        roles: roles whose keys are bound, each with the reason.
        bound: exceptions: further keys that are bound, each with the reason.
        free: exceptions: keys of bound roles that are free, each with the reason.
    """

    meaning: str
    roles: Mapping[Role, str] = field(default_factory=dict)
    bound: Mapping[str, str] = field(default_factory=dict)
    free: Mapping[str, str] = field(default_factory=dict)

    def reason(self, key: str) -> str | None:
        """Return why a key is bound; None if it is free."""
        exceptions = [known for known in (*self.bound, *self.free) if is_below(key, (known,))]
        if exceptions:
            return self.bound.get(max(exceptions, key=len))
        return self.roles.get(role_of(key))

    def bound_of(self, keys: Iterable[str]) -> list[str]:
        """Return those of the keys that are bound."""
        return [key for key in keys if self.reason(key) is not None]

    def bound_keys(self) -> list[str]:
        """Return the keys that are bound, without those below others; exceptions come first."""
        found = self.bound_of(dict.fromkeys((*self.bound, *ROLES)))
        return [key for key in found if not is_below(key, [each for each in found if each != key])]


@dataclass(frozen=True)
class FileRule:
    """What an operation asks of the keys of an experiment's or a study's own file: most are bound.

    Attributes:
        meaning: what the operation does about bound keys, in a sentence.
        free: keys that are free, with those below them, each with the reason.
    """

    meaning: str
    free: Mapping[str, str]

    def binds(self, key: str) -> bool:
        """Whether a dotted key is bound."""
        return not is_below(key, self.free)


_LEARNED = "the agent has learned the game as it sees and plays it; start a new run to change that"
RESUME = KeyRule(
    "A resumed run cannot change these keys.",
    roles={
        Role.GAME: _LEARNED,
        Role.SEEN: _LEARNED,
        Role.NETWORK: "the weights and the rollout are made for it; start a new run to change it",
        Role.RANDOM: "its random numbers are already being drawn; start a new run for another seed",
    },
    bound={
        "env.n_envs": "its emulators continue from their saved states; start a new run for "
        "another number",
        "fork": "a run is forked once, at its beginning; fork the other run into a new folder",
        "algorithm.learn_from.offline.gradient_steps": "the phase before the first timestep has "
        "begun; start a new run to change it",
        "algorithm.learn_from.played.episodes": "the run has had its own copies since it started; "
        "start a new run to learn from others",
        "algorithm.learn_from.played.clone": "it came before the first timestep; start a new run "
        "to change it",
        "algorithm.teacher": "the agent has one teacher from its beginning on; only weight, until "
        "and keep_if_better may change",
        "game.actions": "each output of the network stands for one of them; start a new run",
        "game.parts": _LEARNED,
    },
    free={
        "game": "the file may have moved; its content is compared, and the run continues under "
        "the new rules",
        "evaluation.seed": "the training draws nothing from it; the best evaluation so far no "
        "longer counts",
        "algorithm.teacher.weight": "it is read at each update",
        "algorithm.teacher.until": "it is read at each update",
        "algorithm.teacher.keep_if_better": "it is read when the run ends",
    },
)

FORK = KeyRule(
    "A fork cannot change these keys, and its network must fit the parent's weights.",
    bound={
        "game.actions": "each output of the network stands for an action; give the game the "
        "actions that its parent had, or start a new run"
    },
)

FORK_OWN = KeyRule(
    "A fork always has its own, so they are not compared with the parent's.",
    bound={
        "run_dir": "the fork has its own folder",
        "fork": "it says what is forked",
        "game": "a path; the file's content is compared",
    },
)

_OTHER_EPISODES = "other episodes are played"
FORK_EPISODES = KeyRule(
    "If one of these differs from the parent's, the fork starts with new episodes.",
    roles={
        Role.GAME: _OTHER_EPISODES,
        Role.SEEN: _OTHER_EPISODES,
        Role.RANDOM: "other random numbers are drawn",
    },
    bound={"env.n_envs": "each emulator has an episode in progress"},
    free={
        "game": "the episodes in progress continue under the new rules",
        "evaluation.seed": "the training draws nothing from it",
    },
)

FORK_REPLAY = KeyRule(
    "If one of these differs from the parent's, the fork starts with an empty replay.",
    roles={Role.SEEN: "stored timesteps look different"},
    bound={
        "env.n_envs": "the replay has a row of timesteps for each emulator",
        "algorithm.replay.capacity": "the replay has another size",
        "algorithm.name": "another algorithm has another replay, or none",
        "game.step": "stored timesteps have another length",
    },
)

_OTHER_TASK = "the parent's evaluations played another task"
FORK_BEST = KeyRule(
    "If one of these differs, the parent's best evaluation does not count for the fork.",
    roles={
        Role.GAME: _OTHER_TASK,
        Role.SEEN: _OTHER_TASK,
        Role.RANDOM: "evaluations play other episodes",
    },
    free={"evaluation.seed": "an evaluation with another seed is detected when the run continues"},
)

FORK_TEACHER = KeyRule(
    "If one of these differs from the parent's, the fork measures its teacher again.",
    roles=FORK_BEST.roles,
    bound={
        "algorithm.name": "another algorithm has another teacher, or none",
        "algorithm.teacher.run": "it is another teacher",
        "algorithm.teacher.temperature": "it is measured with this teacher",
    },
    free=FORK_BEST.free,
)

EPISODES = KeyRule(
    "If one of these changes, the log cannot replay the episodes that were in progress.",
    roles={Role.GAME: _OTHER_EPISODES, Role.SEEN: _OTHER_EPISODES},
    bound={"env.n_envs": "each emulator has an episode in progress"},
    free={"game": "the file may have moved; its content is compared"},
)

ARM = KeyRule(
    "Runs that differ in one of these are different arms of a comparison.",
    roles={
        Role.GAME: "it is another task",
        Role.SEEN: "it is another task",
        Role.NETWORK: "it is another agent",
        Role.LEARNING: "it is another agent",
        Role.BUDGET: "it is another budget",
    },
    bound={
        "evaluation.seed": "scores of other episodes cannot be compared as closely",
        "device": "another device rounds differently",
        "algorithm.replay.device": "another device may draw other random numbers",
        "algorithm.micro_batch_size": "sums over other parts are rounded differently",
        "checkpoints.every_timesteps": "a run that learns from Lakes looks for rows at checkpoints",
        "checkpoints.save_replay_buffer": "a resumed run without a replay plays to fill it",
    },
)

ARM_OF_EXPERIMENTS = KeyRule(
    "Experiments whose members or learners differ in one of these are different arms.",
    roles=ARM.roles,
    bound=ARM.bound,
    free={"algorithm.learn_from.lakes": "it is the experiment's own Lake"},
)

_THEIR_ROWS = "use the same, as the learner learns from their rows"
_THEIR_WEIGHTS = "use the same, as members continue with the learner's weights"
LEARNER_ROWS = KeyRule(
    "A learner of an experiment has the same values as the members.",
    roles={Role.SEEN: _THEIR_ROWS},
    bound={"game": _THEIR_ROWS, "env.rewards": _THEIR_ROWS},
)

LEARNER_WEIGHTS = KeyRule(
    "Likewise if members continue with its weights; the reward only if they learn.",
    roles={Role.NETWORK: _THEIR_WEIGHTS},
    bound={"algorithm.reward": f"{_THEIR_WEIGHTS}, whose action values are on that scale"},
    free={"algorithm.name": "pqn and dqn have the same network"},
)

LAKE = KeyRule(
    "A run that learns from a Lake has the same values as the runs that wrote it.",
    roles={Role.SEEN: "rows look different, or have another length"},
    bound={
        f"game.{key}": "rows come from another game"
        for key in ("hardware", "actions", "rewards", "reward", "endings", "observation")
    }
    | {
        "game.parts": "rows look different",
        "game.place": "parts that show visited places look different",
        "env.rewards": "rows have other rewards",
        "game.step": "rows have another length",
    },
)

TEACHER = KeyRule(
    "A run has the same values as the run of its teacher.",
    roles={Role.SEEN: "an observation or an action has another meaning"},
    bound={
        f"game.{key}": "an observation or an action has another meaning"
        for key in ("actions", "observation", "parts", "step")
    },
    free={"env.sticky_actions": "an action means the same, however often it is repeated"},
)

_DECIDED = "the experiment decides it"
_ONE_SEED = "each run gets its own from the {kind}'s seed"
_ITS_FOLDER = "its runs are in the folder members of run_dir"
_ONE_LAKE = "the {kind} has one for all members: write lake next to member"
_ITS_FORKS = "the {kind} decides what its runs start from"
WHOLE_BUDGET = "every run plays all its timesteps, so that budgets are equal"
_FREE_BUDGETS = {
    "evaluation.final_episodes": "only the evaluation at a run's end plays them",
    "algorithm.learn_from.offline": "each run has its own phase",
}
MEMBER_OF_POPULATION = KeyRule(
    "A population decides these keys of its members.",
    roles={Role.RANDOM: _DECIDED, Role.BUDGET: _DECIDED},
    bound={
        "run_dir": "members are in the folder members of run_dir",
        "seed": "each member gets its own from the population's seed",
        "total_timesteps": "it is generations x timesteps_per_generation + train_on.timesteps",
        "evaluation.every_timesteps": "it is timesteps_per_generation",
        "evaluation.episodes": "it is fitness.episodes",
        "evaluation.seed": "each generation plays new episodes",
        "stop_when": WHOLE_BUDGET,
    },
    free=_FREE_BUDGETS,
)

MEMBER_WITH_LEARNER = KeyRule(
    "A population with a learner decides these keys of its members.",
    roles=MEMBER_OF_POPULATION.roles,
    bound={
        **MEMBER_OF_POPULATION.bound,
        "lake": "with a learner, one is for all members: write lake next to member",
    },
    free=_FREE_BUDGETS,
)

MEMBER_OF_MIXTURE = KeyRule(
    "A mixture decides these keys of its members.",
    roles=MEMBER_OF_POPULATION.roles,
    bound={
        "run_dir": _ITS_FOLDER,
        "seed": _ONE_SEED,
        "total_timesteps": "it is rounds x timesteps_per_round",
        "evaluation.every_timesteps": "there is one evaluation a round",
        "evaluation.episodes": "it is fitness.episodes",
        "evaluation.seed": "each round plays new episodes",
        "fork": _ITS_FORKS,
        "lake": _ONE_LAKE,
        "stop_when": WHOLE_BUDGET,
    },
    free=_FREE_BUDGETS,
)

LEARNER = KeyRule(
    "A population or a mixture decides these keys of its learner.",
    roles=MEMBER_OF_POPULATION.roles,
    bound={
        "run_dir": _ITS_FOLDER,
        "seed": _ONE_SEED,
        "evaluation.every_timesteps": "it is evaluated at the end of each stretch",
        "evaluation.episodes": "it is fitness.episodes",
        "evaluation.seed": "it plays the members' episodes, new ones each time",
        "fork": _ITS_FORKS,
        "lake": _ONE_LAKE,
        "total_timesteps": "it is learner_per_{stage}.timesteps",
        "algorithm.learn_from.lakes": "it learns from the {kind}'s Lake",
        "algorithm.learn_from.agents": "write member_shares next to config, or sample uniformly",
        "algorithm.learn_from.offline.gradient_steps": "it is learner_per_{stage}.gradient_steps",
        "algorithm.teacher": "write teacher: best_member, or null, next to config",
        "checkpoints.save_replay_buffer": "the {kind} needs the replay to continue",
        "stop_when": WHOLE_BUDGET,
    },
    free=_FREE_BUDGETS,
)

RUN_OF_STUDY = KeyRule(
    "A study decides these keys of an arm that is a run.",
    bound={
        "run_dir": "runs are in run_dir of the study",
        "seed": "every arm has the seeds of the study",
        "stop_when": WHOLE_BUDGET,
    },
)

_WHERE = "where runs train changes no result"
_KEPT = "it decides only which checkpoints stay"
_STORED = "it changes no result"
RESUME_EXPERIMENT = FileRule(
    "A resumed experiment keeps all keys, including those of member and learner, except these.",
    free={
        "executor": _WHERE,
        "keep_generations": _KEPT,
        "keep_rounds": _KEPT,
        "champion": "it is read when the last generation has ended",
        "upload": _STORED,
    },
)

ARM_FILE = FileRule(
    "Experiments that differ in their own keys are different arms, except for these.",
    free={
        "seed": "an arm has several seeds",
        "run_dir": "each has its own folder",
        "upload": _STORED,
        "executor": _WHERE,
        "keep_generations": _KEPT,
        "keep_rounds": _KEPT,
    },
)

STUDY_FILE = FileRule(
    "A study is what its file says: only these keys may be set, and may change once it is "
    "registered.",
    free={"executor": _WHERE, "run_dir": "the folder of the runs changes no result"},
)

OPERATIONS: Mapping[str, KeyRule] = MappingProxyType(
    {
        "Resume": RESUME,
        "Resume: the log of episodes": EPISODES,
        "Fork": FORK,
        "Fork: its own keys": FORK_OWN,
        "Fork: episodes in progress": FORK_EPISODES,
        "Fork: the replay": FORK_REPLAY,
        "Fork: the best evaluation": FORK_BEST,
        "Fork: the teacher": FORK_TEACHER,
        "Compare: arms of runs": ARM,
        "Compare: arms of experiments": ARM_OF_EXPERIMENTS,
        "Learn from a Lake": LAKE,
        "Learn from a teacher": TEACHER,
        "Population: members": MEMBER_OF_POPULATION,
        "Population with a learner: members": MEMBER_WITH_LEARNER,
        "Mixture: members": MEMBER_OF_MIXTURE,
        "Learner": LEARNER,
        "Learner: rows of members": LEARNER_ROWS,
        "Learner: weights for members": LEARNER_WEIGHTS,
        "Study: arms": RUN_OF_STUDY,
    }
)
"""The rule of each operation by its title in the docs."""

FILE_OPERATIONS: Mapping[str, FileRule] = MappingProxyType(
    {
        "Resume an experiment": RESUME_EXPERIMENT,
        "Compare: files of experiments": ARM_FILE,
        "Study: its file": STUDY_FILE,
    }
)
"""The rule of each operation on the files of experiments and studies, likewise."""
