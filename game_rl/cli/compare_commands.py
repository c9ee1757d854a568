"""`game-rl compare` of runs or of a study, and `game-rl study register, give-up, status`."""

import argparse
import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.text import Text

from game_rl.cli.arguments import not_negative
from game_rl.cli.outputs import add_output
from game_rl.cli.parser import add_command, commands_of
from game_rl.cli.printing import (
    SafeConsole,
    add_json,
    print_facts,
    print_result,
    print_table,
    print_words,
)
from game_rl.config.bundled_configs import find_config
from game_rl.config.experiments.study_config import load_study
from game_rl.config.values import expanded_path
from game_rl.errors import UsageError
from game_rl.experiments.compare.compared_folders import changed_games, read_folder
from game_rl.experiments.compare.comparison import (
    Rule,
    arms_of,
    can_be_paired,
    check_metric,
    compare_arms,
    grouped,
    metric_of,
)
from game_rl.experiments.compare.comparison_report import (
    comparison_json,
    comparison_parts,
    markdown_lines,
)
from game_rl.files.durable_files import write_atomic

if TYPE_CHECKING:
    from game_rl.config.experiments.study_config import Study
    from game_rl.experiments.compare.comparison import Comparison
    from game_rl.experiments.compare.comparison_report import Parts


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_compare)
    parser.add_argument(
        "runs",
        nargs="+",
        type=expanded_path,
        metavar="RUN|STUDY",
        help="directories of runs or experiments; the others are compared with the arm of the "
        "first one. Or the file of one study",
    )
    options = parser.add_argument_group("options for runs (for a study, its file decides)")
    options.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="NAME=PATTERN",
        help="define an arm: the runs whose path or folder name matches, such as pqn='pqn_*'; "
        "repeatable. Other runs form an arm if their configs differ only by the seed",
    )
    options.add_argument(
        "--against",
        metavar="NAME",
        help="arm that the others are compared with (default: that of the first run)",
    )
    options.add_argument(
        "--metric",
        choices=["success_rate", "mean_reward"],
        help="score of a run (default: success_rate, if the game defines success)",
    )
    options.add_argument(
        "--unpaired", action="store_true", help="do not compare runs of the same seed in pairs"
    )
    options.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        metavar="P",
        help="largest p-value of a difference (default: 0.05)",
    )
    options.add_argument(
        "--minimum",
        type=float,
        default=0.0,
        metavar="D",
        help="smallest difference of the means for the verdicts better and worse (default: 0)",
    )
    options.add_argument(
        "--margin",
        type=float,
        metavar="D",
        help="give an arm that is worse by less than this the verdict not worse",
    )
    parser.add_argument(
        "--x",
        choices=["timesteps", "frames"],
        default="timesteps",
        help="x axis of the curves, counted over a run and everything that it comes from "
        "(default: timesteps)",
    )
    add_output(
        parser,
        "--output",
        metavar="FOLDER",
        text="folder for report.md, report.json and report.png (default: none; for a study, its "
        "results folder)",
    )
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="print the report in Markdown, as in report.md, instead of tables for a terminal",
    )
    add_json(parser)


def _compare(arguments: argparse.Namespace) -> int:
    arguments.runs = [path if path.is_dir() else find_config(path) for path in arguments.runs]
    files = [path for path in arguments.runs if path.is_file()]
    if not files:
        return _compare_runs(arguments)
    if len(arguments.runs) > 1:
        raise UsageError(
            f"{files[0]} is a file: name only directories of runs, or only one study's file"
        )
    from game_rl.experiments.study.study_report import study_findings

    findings = study_findings(load_study(files[0]))
    if arguments.output is None:
        arguments.output = findings.study.config.results
    _show_comparison(
        arguments,
        findings.comparison,
        title=findings.study.config.question,
        notes=list(findings.notes),
        more=findings.breaks,
    )
    return 0


def _compare_runs(arguments: argparse.Namespace) -> int:
    if not 0 < arguments.alpha < 1:
        raise UsageError(f"--alpha {arguments.alpha:g} is not between 0 and 1; 0.05 is usual")
    for name in ("minimum", "margin"):
        value = getattr(arguments, name)
        if value is not None and value < 0:
            raise UsageError(f"--{name} {value:g} is negative; 5 points of success rate are 0.05")
    found = [read_folder(path) for path in dict.fromkeys(arguments.runs)]
    patterns = {}
    for text in arguments.arm:
        name, equals, pattern = text.partition("=")
        if not (name and equals and pattern):
            raise UsageError(f"--arm {text}: write a name and a pattern, such as --arm pqn='pqn_*'")
        patterns[name] = pattern
    arms, is_final = arms_of(grouped(found, patterns))
    names = [arm.name for arm in arms]
    against = arguments.against or names[0]
    if against not in names:
        raise UsageError(f"--against {against}: no such arm; there are {', '.join(names)}")
    metric = arguments.metric or metric_of(arms)
    check_metric(arms, metric)
    rule = Rule(
        metric=metric,
        paired=can_be_paired(arms) and not arguments.unpaired,
        alpha=arguments.alpha,
        minimum=arguments.minimum,
        margin=arguments.margin,
    )
    pairs = [(name, against) for name in names if name != against]
    comparison = compare_arms(arms, rule, pairs)
    note = "scores come from each run's final evaluation, on held-out episodes"
    if not is_final:
        note = (
            "some runs have not finished: scores come from each run's newest evaluation, and the "
            "verdict may change"
        )
    changed = [
        f"{folder.name}: the game is changed: {text}"
        for folder in found
        for text in changed_games(folder.path)
    ]
    _show_comparison(arguments, comparison, title=", ".join(names), notes=[note, *changed])
    return 0


def _show_comparison(
    arguments: argparse.Namespace,
    comparison: "Comparison",
    *,
    title: str,
    notes: list[str],
    more: "Parts" = (),
) -> None:
    """Print the report of a comparison; with an output folder, also write its three files.

    Args:
        more: parts that follow all others.
    """
    report = {"title": title, "notes": notes, **comparison_json(comparison)}
    parts = [*comparison_parts(comparison, notes), *(["", *more] if more else [])]
    lines = [f"# {title}", "", *markdown_lines(parts)]
    output: Path | None = arguments.output
    if output is not None:
        from game_rl.viewer.comparison_plot import plot_png

        output.mkdir(parents=True, exist_ok=True)
        write_atomic(output / "report.json", json.dumps(report, indent=2) + "\n")
        write_atomic(output / "report.png", plot_png(comparison, arguments.x))
        text = "\n".join([*lines, "", "![curves and differences](report.png)", ""])
        write_atomic(output / "report.md", text)
    if arguments.json:
        print_facts(report)
    elif arguments.markdown:
        print("\n".join(lines))
    else:
        console = SafeConsole(highlight=False)
        for part in (f"**{title}**", "", *parts):
            if isinstance(part, str):
                texts = enumerate(part.split("**"))  # every other one is bold
                styled = Text.assemble(*((text, "bold" if n % 2 else "") for n, text in texts))
                print_words(console, styled, indent=2 if part.startswith("- ") else 0)
            else:
                print_table(console, part.header, part.rows)


def add_study(parser: argparse.ArgumentParser) -> None:
    steps = commands_of(parser)
    register = add_command(
        steps,
        "register",
        "record a study's plan, and a hash of every file that may change a result",
        "game-rl study register study_ppo_pqn",
    )
    register.set_defaults(command=_register)
    register.add_argument("file", type=Path, metavar="FILE", help="the study's file")
    add_json(register)
    give_up = add_command(
        steps,
        "give-up",
        "count a run that cannot be finished as failed, with the worst value",
        "game-rl study give-up study_ppo_pqn --arm pqn --seed 103 --reason 'the emulator locks up'",
    )
    give_up.set_defaults(command=_give_up)
    give_up.add_argument("file", type=Path, metavar="FILE", help="the study's file")
    give_up.add_argument("--arm", required=True, metavar="NAME", help="arm of the run")
    give_up.add_argument(
        "--seed", type=not_negative, required=True, metavar="N", help="seed of the run"
    )
    give_up.add_argument(
        "--reason", required=True, metavar="TEXT", help="text that the report shows"
    )
    add_json(give_up)
    status = add_command(
        steps,
        "status",
        "show which (arm, seed) has a result, and the progress of the others",
        "game-rl study status study_ppo_pqn",
    )
    status.set_defaults(command=_status)
    status.add_argument("file", type=Path, metavar="FILE", help="the study's file")
    add_json(status, "list")


def _register(arguments: argparse.Namespace) -> int:
    from game_rl.experiments.study.study_registration import register
    from game_rl.experiments.study.study_results import study_dir

    study = _study_of(arguments.file)
    registration = register(study)
    path = study_dir(study.config).registration
    sha256 = registration.sha256()
    file = quote(str(arguments.file))
    n_files = len(registration.code)
    print_result(
        arguments,
        {"registration": str(path), "sha256": sha256, "files_of_code": n_files},
        f"registered   {path}\n             {n_files} files of game_rl, {sha256[:16]}",
        "next         commit it, then\n"
        f"             game-rl train {file}\n             game-rl compare {file}",
    )
    return 0


def _give_up(arguments: argparse.Namespace) -> int:
    from game_rl.experiments.study.study_results import Pair
    from game_rl.experiments.study.study_run import give_up

    pair = Pair(arguments.arm, arguments.seed)
    result = give_up(_study_of(arguments.file), pair, arguments.reason)
    print_result(
        arguments,
        result.model_dump(mode="json"),
        f"{pair.name} counts as failed at timestep {result.timesteps:,}",
    )
    return 0


def _study_of(file: Path) -> "Study":
    if file.is_dir():
        raise UsageError(
            f"{file} is a folder; name the study's file, or a bundled one such as study_ppo_pqn"
        )
    return load_study(find_config(file))


def _status(arguments: argparse.Namespace) -> int:
    from game_rl.experiments.study.study_report import study_status

    rows = study_status(_study_of(arguments.file))
    if arguments.json:
        print_facts([row.to_json() for row in rows])
        return 0
    for row in rows:
        print(f"{row.arm:<20} seed {row.seed:<12} {row.text}")
    done = sum(row.is_done for row in rows)
    print(f"{done} of {len(rows)} results")
    return 0
