"""The card of an agent on the Hub: `README.md`, for people first and for the Hub's search."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from gymnasium import spaces

from game_rl.callbacks.evaluation import Evaluation
from game_rl.emulator.emulator import FRAMES_PER_SECOND
from game_rl.envs.make_env import make_observation_format
from game_rl.files.pretrained import RECORDED_FOLDER
from game_rl.hub.agent_package import REPLAY, AgentAddress, AgentPackage, HubAddress
from game_rl.playback.trained_run import TrainedRun
from game_rl.system.units import counted
from game_rl.viewer.event_words import percents_spaced
from game_rl.viewer.followed_run import memory_words
from game_rl.viewer.run_story import in_percent, percent_interval

_SB3 = "stable-baselines3"
_TASK = "reinforcement-learning"
_WIDTH = 100
_CLIP_WIDTH = 240  # three beside each other fit into the Hub's column


def model_card(
    agent: TrainedRun,
    address: AgentAddress,
    package: AgentPackage,
    evaluation: Evaluation,
    *,
    zip_name: str | None,
    story: Sequence[str],
    has_curves: bool,
    clips: Mapping[str, str],
) -> str:
    """Return the card.

    Args:
        agent: the packed agent.
        evaluation: of the packed agent, by `package.repeat`.
        zip_name: name of Stable-Baselines3's file; None if it cannot have the network.
        story: paragraphs on the game and the training, as in the run's report.
        has_curves: whether there is a picture of the training's evaluations.
        clips: title and description of episodes that are shown beside each other, in place of the
            policy at play.
    """
    facts = yaml.safe_dump(
        _metadata(agent, package, evaluation, has_zip=zip_name is not None),
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
    )
    algorithm = agent.config.algorithm.name.upper()
    sections = [
        f"---\n{facts}---",
        f"# {package.agent}: {algorithm} plays {package.rom.title}",
        _clips(address, clips),
        percents_spaced(_story(agent, package, evaluation)),
        percents_spaced(_scores(evaluation)),
        "## The game and the training",
        *story,
        *(("![Evaluations while it learned](curves.png)",) if has_curves else ()),
        _play(address, package),
        *_sb3(address, agent, zip_name),
        _sees(agent),
        _training(agent, package),
        _repeats(package),
    ]
    return "\n\n".join(sections) + "\n"


def _clips(address: AgentAddress, clips: Mapping[str, str]) -> str:
    """Return the episodes beside each other, or the policy at play where there are none.

    The first episode without an evaluation of the policy has the policy at play beside it.
    """
    cells = [(title, f"{title.lower()}.mp4", about) for title, about in clips.items()]
    if not cells:
        return _video(address, REPLAY)
    if len(cells) == 1:
        cells.append(("Now", REPLAY, "The policy at play."))
    rows = (
        ("th", [title for title, _, _ in cells]),
        ("td", [_video(address, name, width=_CLIP_WIDTH) for _, name, _ in cells]),
        ("td", [html.escape(about) for _, _, about in cells]),
    )
    lines = [
        f"<tr>{''.join(f'<{tag}>{content}</{tag}>' for content in row)}</tr>" for tag, row in rows
    ]
    return "\n".join(["<table>", *lines, "</table>"])


def _video(address: AgentAddress, name: str, *, width: int | None = None) -> str:
    place = name
    if isinstance(address, HubAddress):
        place = f"https://huggingface.co/{address.repo_id}/resolve/main/{name}"
    size = "" if width is None else f' width="{width}"'
    return f'<video src="{place}"{size} controls autoplay loop muted></video>'


def _metadata(
    agent: TrainedRun, package: AgentPackage, evaluation: Evaluation, *, has_zip: bool
) -> dict[str, Any]:
    reward = f"{evaluation.mean_reward:.2f} +/- {evaluation.std_reward:.2f}"
    metrics: list[dict[str, Any]] = [
        {"type": "mean_reward", "value": reward, "name": "mean_reward", "verified": False}
    ]
    if (rate := evaluation.success_rate) is not None:
        ends = _interval(evaluation.success_interval)
        name = f"success_rate, 95 % interval {ends}"
        metrics.append(
            {"type": "success_rate", "value": round(rate, 4), "name": name, "verified": False}
        )
    game = agent.game.name
    return {
        "library_name": _SB3 if has_zip else "game_rl",
        "tags": [
            *(game, "deep-reinforcement-learning", _TASK),
            *((_SB3,) if has_zip else ()),
            *("game_rl", "game-boy", "pyboy"),
        ],
        "model-index": [
            {
                "name": agent.config.algorithm.name.upper(),
                "results": [
                    {
                        "task": {"type": _TASK, "name": _TASK},
                        "dataset": {"name": package.rom.title, "type": game},
                        "metrics": metrics,
                    }
                ],
            }
        ],
    }


def _interval(ends: tuple[float, float] | None) -> str:
    return "none" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"


def _success_ends(evaluation: Evaluation) -> str:
    ends = evaluation.success_interval
    return "" if ends is None else f" (95 % interval {percent_interval(ends)} %)"


def _story(agent: TrainedRun, package: AgentPackage, evaluation: Evaluation) -> str:
    state = agent.state
    frames = state.num_timesteps * agent.config.env.frame_skip + state.waited_frames
    played = counted(evaluation.episodes, "episode")
    how = f"a mean reward of {evaluation.mean_reward:.2f} in {played}"
    if (rate := evaluation.success_rate) is not None:
        reward = f"a mean reward of {evaluation.mean_reward:.2f}"
        how = f"success in {in_percent(rate)} of {played}{_success_ends(evaluation)} and {reward}"
    lines = [
        f"This agent plays *{package.rom.title}* on a Game Boy, and reaches {how}.",
        f"It has learned from {state.num_timesteps:,} timesteps, which are {frames:,} frames or "
        f"{frames / FRAMES_PER_SECOND / 3600:,.1f} hours of the game, and",
        "takes its most probable actions." if agent.deterministic else "samples its actions.",
        "It was trained with [Stable-Baselines3](https://github.com/DLR-RM/stable-baselines3), "
        "[PyBoy](https://github.com/Baekalfen/PyBoy) and game_rl.",
    ]
    return " ".join(lines)


def _scores(evaluation: Evaluation) -> str:
    reward = f"{evaluation.mean_reward:.2f} ± {evaluation.std_reward:.2f}"
    if (ends := evaluation.reward_interval) is not None:
        reward += f" (95 % interval of the mean {_interval(ends)})"
    rows = [("episodes", f"{evaluation.episodes:,}")]
    if (rate := evaluation.success_rate) is not None:
        rows.append(("success", f"{in_percent(rate)}{_success_ends(evaluation)}"))
    rows.append(("mean reward", reward))
    rows.append(("mean length", f"{evaluation.mean_length:,.0f} timesteps"))
    if evaluation.endings:
        ended = ", ".join(f"{name} {count:,}" for name, count in evaluation.endings.items())
        rows.append(("endings", ended))
    return _table(("evaluation", ""), rows)


def _play(address: AgentAddress, package: AgentPackage) -> str:
    run = address.played
    first = "pip install .  # in a clone of game_rl, with which this agent comes"
    if isinstance(address, HubAddress):
        first = (
            "pip install 'game_rl[hub] @ git+ADDRESS'  # with the address of game_rl's repository\n"
            f"game-rl pull {address}"
        )
    rom = package.rom
    where = "The game comes with game_rl, so nothing else is needed."
    if not rom.is_bundled:
        where = (
            f"The ROM is not part of this repository. It is *{rom.title}* (`{rom.header}` in its "
            f"header), SHA-1 `{rom.sha1}`; put your own copy into a folder `roms`."
        )
    if package.states_left_out:
        files = ", ".join(f"`game/{path}`" for path in package.states_left_out)
        where += (
            f" Start states that hold its memory are not here either: {files}. Make them with "
            "`game-rl play`, or ask for them."
        )
    return f"""## Watch it, record it, train it further

```bash
{first}
game-rl watch {run} --open
game-rl record {run} --output episode.gif
game-rl train --fork {run} run_dir=runs/mine fork.counters=new total_timesteps=1_000_000
```

{where}{_checked(address)}{_recorded(address, package)}"""


def _recorded(address: AgentAddress, package: AgentPackage) -> str:
    """Return how another agent learns from the episodes that this one brings, if it has some."""
    n = sum(file.path.startswith(f"{RECORDED_FOLDER}/") for file in package.files)
    if not n:
        return ""
    return (
        f" `{RECORDED_FOLDER}/` has {counted(n, 'recorded episode')}, from which another agent "
        f"learns with `algorithm.learn_from.played.episodes={address.played}`."
    )


def _checked(address: AgentAddress) -> str:
    if isinstance(address, HubAddress):
        return " `pull` compares every file with its hash and runs no code."
    return ""


def _sb3(address: AgentAddress, agent: TrainedRun, zip_name: str | None) -> Iterator[str]:
    """Yield the section for users of Stable-Baselines3, if there is a zip."""
    if zip_name is None or not isinstance(address, HubAddress):
        return
    kind = agent.config.algorithm.name.upper()
    package = "stable_baselines3"
    if agent.config.algorithm.memory is not None:
        kind = f"Recurrent{kind}"
        package = "sb3_contrib"
    way = f"deterministic={agent.deterministic}"
    predicted = f"action, _ = model.predict(observation, {way})"
    if agent.config.algorithm.memory is not None:
        predicted = (
            f"action, state = model.predict(observation, state, {way})  # state: None at first"
        )
    yield f"""## In Stable-Baselines3

```python
from huggingface_hub import hf_hub_download
from {package} import {kind}

model = {kind}.load(hf_hub_download("{address.repo_id}", "{zip_name}"))
{predicted}
```

`load_from_hub` of huggingface_sb3 fetches the same file. Both unpickle it, which can run code, so
load it only if you trust its author; `game-rl pull` does not."""


def _sees(agent: TrainedRun) -> str:
    observed = make_observation_format(agent.config.env, agent.game).space
    parts: Mapping[str, Any] = {"screen": observed}
    if isinstance(observed, spaces.Dict):
        parts = observed.spaces
    seen = ", ".join(
        f"`{name}` {part.dtype} [{' × '.join(map(str, part.shape))}]"
        for name, part in parts.items()
    )
    definition = agent.game.definition.model_dump(
        mode="json",
        by_alias=True,
        exclude_unset=True,
        include={"rewards", "endings", "success"},
    )
    rules = yaml.safe_dump(
        definition, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=None
    )
    actions = ", ".join(f"`{name}`" for name in agent.game.action_names)
    if (memory := agent.config.algorithm.memory) is not None:
        seen += f", and remembers with {memory_words(memory.model_dump())}"
    return f"""## Observation, actions and rewards

It sees {seen}. In each timestep of {agent.config.env.frame_skip} frames it chooses one of
{len(agent.game.action_names)} actions: {actions}.

```yaml
{rules.strip()}
```"""


def _training(agent: TrainedRun, package: AgentPackage) -> str:
    config = agent.config
    rows = [
        ("algorithm", config.algorithm.name.upper()),
        ("timesteps", f"{agent.state.num_timesteps:,} of {config.total_timesteps:,}"),
        ("envs", f"{config.env.n_envs}, frame_skip {config.env.frame_skip}"),
        ("seed", f"{config.seed}"),
    ]
    left_out = ""
    if package.keys_left_out:
        keys = ", ".join(f"`{key}`" for key in package.keys_left_out)
        left_out = f" Keys that name folders or services of its author are left out: {keys}."
    table = _table(("training", ""), rows)
    return f"## How it was trained\n\n{table}\n\n`config.yaml` has every setting.{left_out}"


def _repeats(package: AgentPackage) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in package.versions.items())
    return f"""## Repeat the score

```bash
{package.repeat}
```

It plays the same episodes; `results.json` has the result of each. On a processor of the same kind
and with the same versions, every result is equal; elsewhere, the score should lie within the
interval. The processor: {package.processor}. The versions: {versions}; source of game_rl
`{package.source_sha256[:12]}`. ROM: SHA-1 `{package.rom.sha1}`."""


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    return "\n".join(_lines(head, rows))


def _lines(head: tuple[str, str], rows: list[tuple[str, str]]) -> Iterator[str]:
    yield f"| {head[0]} | {head[1]} |"
    yield "|---|---|"
    for name, value in rows:
        yield f"| {name} | {value} |"
