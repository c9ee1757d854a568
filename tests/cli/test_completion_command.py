import shutil
import subprocess
from pathlib import Path

import pytest

from game_rl.cli.editor_commands import SHELLS
from game_rl.cli.main import main
from game_rl.cli.parser import COMMANDS

_ASK = """\
source "$1"
COMP_WORDS=(game-rl "${@:2}")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_shtab_game_rl game-rl "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


# A zsh at a terminal of its own, which types a line and a tab, and reads until the answer is there.
_TYPE_IN_ZSH = """\
zmodload zsh/zpty
zpty terminal zsh -f -i
zpty -w terminal "PS1=; autoload -Uz compinit; compinit -u -D; eval \\"\\$(<$1)\\"; print REA''DY"
zpty -r terminal out '*READY*'
zpty -w -n terminal "game-rl $2"$'\\t'
zpty -r terminal out "*$3*" && print found
zpty -d terminal
"""
HANG_GUARD_S = 60


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _script(tmp_path_factory.mktemp("completion"), "bash")


def _script(folder: Path, shell: str) -> Path:
    path = folder / f"game-rl.{shell}"
    with pytest.MonkeyPatch.context() as patch:
        printed: list[str] = []
        patch.setattr("builtins.print", printed.append)
        assert main(["completion", shell]) == 0
    path.write_text("\n".join(printed), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for run in ("runs/duel_ppo/config.yaml", "runs/more/duel_dqn/config.yaml"):
        (tmp_path / run).parent.mkdir(parents=True)
        (tmp_path / run).touch()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "duel_ppo.yaml").touch()
    return tmp_path


def completed(script: Path, folder: Path, *words: str) -> set[str]:
    """Return what bash offers for the last of these words."""
    ended = subprocess.run(
        ["bash", "-c", _ASK, "bash", str(script), *words],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return set(ended.stdout.split())


def test_commands_options_runs_and_configs_are_completed(script: Path, folder: Path) -> None:
    assert completed(script, folder, "tr") == {"train"}
    assert completed(script, folder, "") >= set(COMMANDS)
    assert completed(script, folder, "train", "--smo") == {"--smoke"}
    assert completed(script, folder, "replay", "ver") == {"verify"}
    assert completed(script, folder, "evaluate", "runs/d") == {"runs/duel_ppo"}
    assert "runs/more/duel_dqn" in completed(script, folder, "evaluate", "runs/m")
    assert completed(script, folder, "train", "configs/d") == {"configs/duel_ppo.yaml"}


def test_bash_calls_it_for_this_command(script: Path) -> None:
    command = ["bash", "-c", f'eval "$(cat {script})"; complete -p game-rl']
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert "_shtab_game_rl game-rl" in ended.stdout


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("", "new-game"),
        ("train --smo", "train --smoke"),
        ("replay ver", "replay verify"),
        ("evaluate runs/du", "runs/duel_ppo"),
        ("train configs/du", "configs/duel_ppo.yaml"),
    ],
)
def test_zsh_completes_the_same(typed: str, completed: str, folder: Path, tmp_path: Path) -> None:
    script = _script(tmp_path, "zsh")
    command = ["zsh", "-f", "-c", _TYPE_IN_ZSH, "zsh", str(script), typed, completed]
    ended = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_GUARD_S,
        check=True,
    )
    assert ended.stdout.strip() == "found"


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "game-rl" in capsys.readouterr().out
