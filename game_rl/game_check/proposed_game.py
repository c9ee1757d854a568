"""The sections of a game.yaml, and a run.yaml, that a survey of an unknown game proposes."""

from collections.abc import Iterator, Mapping
from textwrap import TextWrapper

from game_rl.emulator.emulator import FRAMES_PER_SECOND, SCREEN_WIDTH, Button
from game_rl.game_check.button_pace import LONGEST_BUSY_FRAMES
from game_rl.game_check.game_survey import FoundEnding, GameSurvey, PlacePart
from game_rl.game_check.menu_search import PlayableStart

_FRAME_SKIP = 8  # of a game that takes buttons so often
_LONGEST_FRAME_SKIP = 32
_FRAMES_OF_A_STEP = 24  # of a press that occupies the game so long that `step` would pay

_CELL_BITS = 4  # cells of 16 pixels, the size of what stands in most games
_TAP_FRAMES = 4
_N_ENVS = 8
_LONGEST_ROLLOUT = 128
_EPISODES_IN_A_ROLLOUT = 4

_AXES: Mapping[Button, tuple[str, str]] = {"left": ("x", "column"), "up": ("y", "row")}


def proposed_sections(start: PlayableStart, survey: GameSurvey) -> dict[str, str]:
    """Return the text of the sections of game.yaml of which something was found, by key."""
    sections = {
        "start_states": playable_start_section(start),
        "actions": _actions(survey),
    }
    if survey.place or survey.ending:
        sections["variables"] = _variables(survey)
    if survey.place:
        sections["rewards"] = _rewards(survey)
    elif survey.ending:
        sections["variables"] += "  score: {address: 0xC000, type: u8}   # A GUESS\n"
    if survey.ending:
        sections["endings"] = _endings(survey)
    if survey.bar:
        sections["observation"] = _observation(survey)
    sections["actions"] += _step(survey)
    return sections


def playable_start_section(start: PlayableStart) -> str:
    """Return the section of game.yaml that begins where the player can act."""
    steps = "".join(
        f"      - {{wait: {press.wait}}}\n      - {{hold: [{press.button}], frames: 4}}\n"
        for press in start.way.presses
    )
    if start.is_smooth:
        obeys = "There the directions move something: the player, it seems."
    else:
        obeys = (
            f"There the directions do {start.trial.n_directions} different things, but nothing "
            "moves as long as one is held: it is a game of single moves, or still a menu. Look at "
            "the contact sheet."
        )
    return (
        _comment(
            "Where episodes start: what to press from power-on, in frames (60 a second). new-game "
            f"has found this script by trying, with the shortest waits. {obeys}"
        )
        + f"start_states:\n  beginning:\n    script:\n{steps}      - {{wait: {start.way.wait}}}\n"
    )


def _actions(survey: GameSurvey) -> str:
    lines = ["  idle: []"]
    lines += [f"  {button}: {_pressed(button, survey)}" for button in survey.buttons]
    unused = [button for button in ("a", "b") if button not in survey.buttons]
    lines += [f"  # {button}: [{button}]   # has changed nothing" for button in unused]
    sides = [button for button in ("left", "right") if button in survey.buttons]
    lines += [
        f"  # {side}_{button}: [{side}, {button}]"
        for button in ("a", "b")
        for side in sides
        if button in survey.buttons
    ]
    taps = ""
    if survey.taps:
        names = " and ".join(survey.taps)
        taps = f" {names}: holding longer has made no difference, so each time is a new press."
    return _comment(
        "The buttons that change the screen, each alone, in some moments of random play; a "
        f"timestep holds them for env.frame_skip frames.{taps} Leave out what the agent does not "
        "need: it has to try every action. Those in comments press two buttons together, as for a "
        "jump to the side."
    ) + "\n".join(("actions:", *lines, ""))


def _pressed(button: Button, survey: GameSurvey) -> str:
    if button in survey.taps:
        return f"{{hold: [{button}], frames: {_TAP_FRAMES}}}"
    return f"[{button}]"


def _step(survey: GameSurvey) -> str:
    """Return a comment about `step` if it would pay; else nothing."""
    stretches = survey.stretches
    if stretches.are_long:
        evidence = (
            f"In {stretches.n_silent} of {stretches.n_looks} moments of random play, no direction "
            "did anything for 0.8 s, as in a text, an animation or an introduction."
        )
    elif slow := _slow_buttons(survey):
        longest = ", ".join(
            f"{button} ({frames} frames{' or more' if frames == LONGEST_BUSY_FRAMES else ''})"
            for button, frames in slow.items()
        )
        evidence = f"After some presses the game takes no other button for long: {longest}."
    else:
        return ""
    name = "the variable"
    if stretches.address is not None:
        place = _place(stretches.address, stretches.bank)
        also = f", as {stretches.others:,} other bytes are" if stretches.others else ""
        name = f"a variable, such as busy: {{{place}}}, which was {stretches.value} elsewhere{also}"
    return (
        "\n"
        + _comment(
            f"How long each timestep plays on, so that each one is a decision. {evidence} Name "
            f"{name}, and uncomment this."
        )
        + f"# step: {{until: {{variable: busy, equals: {stretches.value}}}, at_most_frames: 240}}\n"
    )


def _slow_buttons(survey: GameSurvey) -> dict[Button, int]:
    """Return the buttons after which the game is occupied for long, with the median frames."""
    medians = {
        button: sorted(frames)[len(frames) // 2]
        for button, frames in survey.pace.busy.items()
        if frames
    }
    return {button: n for button, n in medians.items() if n >= _FRAMES_OF_A_STEP}


def proposed_frame_skip(survey: GameSurvey | None) -> int:
    """Return the frames of a timestep: for as long as the game ignores buttons after a press."""
    if survey is None:
        return _FRAME_SKIP
    return min(max(_FRAME_SKIP, survey.pace.busy_frames), _LONGEST_FRAME_SKIP)


def _pace(survey: GameSurvey) -> str:
    """Return how fast the game takes buttons, as a sentence."""
    pace = survey.pace
    shown = f"A press shows after {pace.shown_after} frames"
    tried = f"({pace.n_presses} presses tried)"
    if pace.busy_frames <= _FRAME_SKIP:
        return f"{shown}, and the game takes the next one within {pace.busy_frames} {tried}."
    return (
        f"{shown}. After most of the presses, the game takes no other button for at least "
        f"{pace.busy_frames} {tried}, so more decisions would count for nothing."
    )


def _variables(survey: GameSurvey) -> str:
    text = _comment(
        "Where the game keeps its numbers. new-game has found these by what they do; game-rl "
        "check-game shows their values. Types: u8 u16 u24 u32 s8 s16 s24 s32, bcd and digits "
        "(with bytes: 3, say), bit (with bit: 0 to 7) and bits (an array, with bytes); longer ones "
        "have endian: little (the default) or big; banked RAM has bank."
    )
    text += "variables:\n"
    for part in survey.place:
        name, cell = _AXES[part.byte.buttons[0]]
        mask = 0xFFFF if part.type == "u16" else 0xFF
        mask = mask >> _CELL_BITS << _CELL_BITS
        place = _place(part.address, part.bank)
        text += f"  {name}: {{{place}, type: {part.type}}}   # {_moves(part)}\n"
        text += (
            f"  {cell}: {{{place}, type: {part.type}, mask: 0x{mask:X}, shift: {_CELL_BITS}}}"
            f"   # {name} in steps of {1 << _CELL_BITS}\n"
        )
    if survey.ending:
        place = _place(survey.ending.address, survey.ending.bank)
        text += f"  over: {{{place}, type: u8}}   # {_tells(survey.ending)}\n"
    text += "  # score: {address: 0xC0A2, type: bcd, bytes: 3, endian: big}\n"
    return text


def _moves(part: PlacePart) -> str:
    one, other = part.byte.buttons
    return f"goes one way with {one}, back with {other}"


def _tells(ending: FoundEnding) -> str:
    others = f"; {ending.others:,} other bytes do so, too" if ending.others else ""
    return f"is like this only when it is over{others}"


def _place(address: int, bank: int | None) -> str:
    return f"address: 0x{address:04X}" + ("" if bank is None else f", bank: {bank}")


def _rewards(survey: GameSurvey) -> str:
    cells = ", ".join(_AXES[part.byte.buttons[0]][1] for part in survey.place)
    return (
        _comment(
            "What the agent learns. new_places is A STOPGAP, so that something trains: an episode "
            "earns it for each new place, which teaches the agent to get around, not to win. "
            "Replace it by what you want: a score that rises, a life that is lost. on: increase "
            "or decrease (weight x amount), change (weight each time), equals (weight "
            "each timestep with value: n), value (weight x value). once: true, once an episode."
        )
        + "rewards:\n"
        + f"  new_places: {{variables: [{cells}], on: first_visit, weight: 0.1}}\n"
        + "  # score_up: {variable: score, on: increase, weight: 0.01}\n"
        + "  # life_lost: {variable: lives, on: decrease, weight: -1.0}\n"
    )


def _endings(survey: GameSurvey) -> str:
    ending = survey.ending
    assert ending is not None
    when = "the directions had no effect any more"
    doubt = "Another value may mean another ending, such as a victory."
    if ending.is_title:
        when = "a screen from before the start came back"
    values = ", ".join(map(str, ending.values))
    if ending.is_flag:
        condition = "at_least: 1"
        doubt = (
            f"There the variable over was {values}; it is 0 in play, so anything else ends an "
            "episode."
        )
    elif len(ending.values) == 1:
        condition = f"equals: {values}"
    else:
        condition = f"in: [{values}]"
    line = f"  game_over: {{variable: over, {condition}}}\n"
    if ending.episodes == 1:
        doubt += " It happened only once, so it is a comment: check it first."
        body = f"# endings:\n# {line}"
    else:
        body = f"endings:\n{line}"
    return (
        _comment(
            f"What ends an episode. {ending.episodes} of {survey.n_episodes} episodes of random "
            f"play came to where {when}. {doubt} equals: n, in: [n, m], at_most: n, at_least: n, "
            "increases: true and more."
        )
        + body
    )


def _observation(survey: GameSurvey) -> str:
    bar = survey.bar
    assert bar is not None
    top, height = bar.rest
    return (
        _comment(
            "The part of the screen that the agent sees; without it the whole one. Rows "
            f"{bar.top} to {bar.top + bar.rows - 1} change little while the others do, as a status "
            "bar does. Uncomment this to leave them out, if the agent needs nothing that they show."
        )
        + f"# observation: {{crop: {{top: {top}, left: 0, height: {height}, width: "
        f"{SCREEN_WIDTH}}}}}\n"
    )


def _comment(text: str) -> str:
    wrap = TextWrapper(98, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
    return "\n".join((*wrap.wrap(text), ""))


_RUN = """\
# yaml-language-server: $schema=run.schema.json
# A first training of {title}. Look at its memory, disk and hours first: game-rl preflight {file}
# Keys that are not written here have their defaults; an editor shows every key with its meaning.
game: game.yaml
seed: 0
total_timesteps: 100_000   # some minutes; ten times as many for a game that is hard
run_dir: {run_dir}
env:
  n_envs: {n_envs}
{pace}  frame_skip: {frame_skip}   # one timestep = {frame_skip} frames = {milliseconds} ms
  frame_stack: 4   # frames that the agent sees together, so that it sees motion
  max_episode_timesteps: {longest}   # {seconds} s: {why}
  observation: {{size: half, colour: grey}}   # size: full for small things; see `crop` in game.yaml
algorithm:
  name: ppo
  n_steps: {n_steps}   # x {n_envs} envs = {rollout:,} timesteps between two updates
  batch_size: {batch_size}
  n_epochs: 4
  learning_rate: {{start: 5.0e-4, end: 0}}
  gamma: 0.99   # what comes 100 timesteps later still counts
  ent_coef: 0.01   # more, if it repeats one action too soon
evaluation: {{every_timesteps: 20_000, episodes: 10, final_episodes: 20}}
checkpoints: {{every_timesteps: 50_000, keep_last: 2}}
"""


def proposed_run(*, title: str, file: str, run_dir: str, survey: GameSurvey | None) -> str:
    """Return the text of a run.yaml beside game.yaml.

    Args:
        title, file, run_dir: the game's title and the file's path, in one line each; the folder of
            the run as YAML.
        survey: None if the game was not played.
    """
    frame_skip = proposed_frame_skip(survey)
    longest = 1_000
    why = "an episode that the game does not end is cut off"
    n_steps = _LONGEST_ROLLOUT
    pace = ""
    if survey is not None and survey.pace.shown_after:
        pace = "".join(f"  {line}\n" for line in _comment(_pace(survey)).splitlines())
    if survey is not None and survey.n_ended:
        median = survey.median_frames // frame_skip
        why = f"random play lasts {median:,} timesteps in the median"
        longest = max(longest, _rounded_up(2 * median))
        while n_steps > _EPISODES_IN_A_ROLLOUT * median and n_steps > 16:
            n_steps //= 2
    rollout = n_steps * _N_ENVS
    return _RUN.format(
        title=title,
        file=file,
        run_dir=run_dir,
        n_envs=_N_ENVS,
        frame_skip=frame_skip,
        milliseconds=round(1000 * frame_skip / FRAMES_PER_SECOND),
        pace=pace,
        longest=longest,
        seconds=round(longest * frame_skip / FRAMES_PER_SECOND),
        why=why,
        n_steps=n_steps,
        rollout=rollout,
        batch_size=rollout // 4,
    )


def _rounded_up(timesteps: int) -> int:
    return -(-timesteps // 500) * 500


def survey_lines(start: PlayableStart, survey: GameSurvey) -> Iterator[str]:
    """Yield what was found, in sentences."""
    pressed = ", ".join(f"{press.button.upper()} after {press.wait}" for press in start.way.presses)
    total = f"{start.way.frames:,} in all"
    yield f"start: {pressed or 'no button'}, then {start.way.wait} frames; {total}"
    yield f"buttons that change the screen: {', '.join(survey.buttons) or 'none'}"
    for part in survey.place:
        name, _ = _AXES[part.byte.buttons[0]]
        yield f"{name}: {part.type} at 0x{part.address:04X}, {_moves(part)}"
    if survey.ending:
        values = " or ".join(map(str, survey.ending.values))
        ended = f"{survey.ending.episodes} of {survey.n_episodes} episodes of random play ended"
        yield f"ending: {ended}, with {values} at 0x{survey.ending.address:04X}"
    if survey.pace.shown_after:
        yield f"frames: {_pace(survey)}"
    if survey.bar:
        last = survey.bar.top + survey.bar.rows - 1
        yield f"status bar, it seems: rows {survey.bar.top} to {last}"
