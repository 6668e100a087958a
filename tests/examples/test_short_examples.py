"""The short examples run as programs, and learn what they are there to learn."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *options: str, launcher: tuple[str, ...] = ()) -> str:
    command = [sys.executable, *launcher, str(EXAMPLES / f"{name}.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def figures(text: str, what: str) -> list[float]:
    return [float(figure) for figure in re.findall(rf"{what} +([\d.]+)", text)]


def test_gpt_learns_a_text_and_writes_on(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three four five six seven\n" * 100)
    shown = run("gpt", "--text", str(text), "--steps", "60", "--write", "90")
    losses = figures(shown, "loss")
    assert losses[0] > 2.5 and losses[-1] < 1.5
    assert len(shown.split("loss")[-1].split("\n", 1)[1]) >= 90


def test_diffusion_draws_a_spiral_out_of_noise() -> None:
    shown = run("diffusion", "--steps", "150")
    assert figures(shown, "within")[0] < 0.2
    assert "#" in shown


def test_ppo_balances_the_pole_longer_than_chance() -> None:
    pushes = figures(run("ppo", "--updates", "12"), "update +\\d+")
    assert pushes[0] < 40 and pushes[-1] > 60


def test_graph_network_finds_the_groups_of_most_people() -> None:
    shown = run("graph", "--people", "400", "--steps", "80")
    assert figures(shown, "right")[-1] > 70
    assert figures(shown, "loss")[-1] < 0.5


def test_data_parallel_processes_learn_together(tmp_path: Path) -> None:
    launcher = ("-m", "rushlight.distributed.run", "--standalone", "--nproc-per-node", "2")
    launched = run("ddp", "--epochs", "1", launcher=launcher)
    saved = tmp_path / "net.pt"
    started = run("ddp", "--epochs", "1", "--processes", "2", "--save", str(saved))
    assert figures(started, "right")[0] > 75 and saved.stat().st_size > 80_000
    for what in "loss", "right":
        assert figures(started, what) == figures(launched, what)
