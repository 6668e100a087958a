"""python -m rushlight.distributed.run: places, failures, restarts, several machines."""

from __future__ import annotations

import operator
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rushlight.distributed import run
from rushlight.distributed.elastic.multiprocessing.errors import ChildFailedError
from rushlight.distributed.launcher import LaunchConfig, elastic_launch

ROOT = Path(__file__).resolve().parents[2]

SUM = """
import os, sys
import rushlight as torch
import rushlight.distributed as dist
dist.init_process_group()
x = torch.tensor([float(os.environ["RANK"]), 1.0])
dist.all_reduce(x)
places = os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"]
sys.stdout.write(f"sum {x.tolist()} {' '.join(places)} {sys.argv[1:]}\\n")
dist.destroy_process_group()
"""
FAIL = """
import os, sys, time
from rushlight.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1":
        sys.stdout.write("again\\n")
        return
    if os.environ["RANK"] == "1":
        raise ValueError("no such thing")
    time.sleep(60)
main()
"""


def command(*args: object, module: str = "run") -> list[str]:
    return [sys.executable, "-m", f"rushlight.distributed.{module}", *map(str, args)]


def launched(*args: object, module: str = "run", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args, module=module),
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(SUM)
    return path


def test_processes_get_their_places(script: Path) -> None:
    result = launched("--standalone", "--nproc_per_node=2", script, "--lr", 3)
    lines = sorted(line for line in result.stdout.splitlines() if line.startswith("sum"))
    assert lines == [f"sum [1.0, 2.0] {rank} 2 ['--lr', '3']" for rank in range(2)], result


def test_the_first_failure_is_told_and_ends_the_others(script: Path) -> None:
    script.write_text(FAIL)
    start = time.monotonic()
    result = launched("--standalone", "--nproc-per-node", 2, script)
    assert time.monotonic() - start < 20
    assert result.returncode == 1
    assert "rank 1 ended first, with exit code 1" in result.stderr
    assert "ValueError: no such thing" in result.stderr.split("ended first")[1]


def test_all_are_started_again(script: Path) -> None:
    script.write_text(FAIL)
    result = launched("--standalone", "--nproc-per-node", 2, "--max-restarts", 1, script)
    assert result.returncode == 0, result
    assert result.stdout.splitlines() == ["again", "again"]


def launched_on_two_machines(script: Path, *options: object) -> list[tuple[int, str]]:
    """Exit codes and outputs of launchers that take this machine for two."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    common = ("--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{port}", *options)
    launchers = [
        subprocess.Popen(
            command(*common, "--node-rank", node, script),
            env=os.environ | {"PYTHONPATH": str(ROOT), "RUSHLIGHT_TRANSPORT": "tcp"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in (1, 0)
    ]
    texts = [launcher.communicate(timeout=60)[0] for launcher in launchers]
    return [(each.returncode, text) for each, text in zip(launchers, texts, strict=True)]


def test_two_machines_join(script: Path) -> None:
    for code, text in launched_on_two_machines(script):
        assert code == 0 and "sum [1.0, 2.0] 0 2" in text, text


def test_a_failure_on_one_machine_starts_both_again(script: Path) -> None:
    script.write_text(FAIL)
    for code, text in launched_on_two_machines(script, "--max-restarts", 1):
        assert code == 0 and "again\n" in text and "rank 1 ended first" in text, text
    for code, text in launched_on_two_machines(script):
        assert code == 1 and "ValueError: no such thing" in text, text


def ends(pid: int) -> bool:
    """Whether a process ends soon; whoever inherits it lets go of it in its own time."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_ending_the_launcher_ends_its_processes(script: Path) -> None:
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    launcher = subprocess.Popen(
        command("--standalone", script),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    pid = int(launcher.stdout.readline())
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(timeout=20) == 128 + signal.SIGTERM
    assert ends(pid)
    launcher.stdout.close()


def test_other_programs(script: Path) -> None:
    script.write_text("import os, sys\nprint(sys.argv[1:], os.environ['LOCAL_WORLD_SIZE'])\n")
    result = launched("--standalone", script, "--x", module="launch")
    assert result.stdout == "['--local-rank=0', '--x'] 1\n", result
    result = launched("--standalone", "-m", "program", PYTHONPATH=f"{script.parent}:{ROOT}")
    assert result.stdout == "[] 1\n", result
    result = launched("--standalone", "--no-python", "/bin/sh", "-c", "echo $RANK of $WORLD_SIZE")
    assert result.stdout == "0 of 1\n", result


def test_outputs_go_to_files(script: Path, tmp_path: Path) -> None:
    options = ("--standalone", "--nproc-per-node", 2, "--log_dir", tmp_path / "logs", "-r", 3)
    result = launched(*options, script)
    assert result.returncode == 0 and result.stdout == "", result
    logs = sorted((tmp_path / "logs").glob("*/attempt_0/*/stdout.log"))
    assert [log.parent.name for log in logs] == ["0", "1"]
    assert all("sum [1.0, 2.0]" in log.read_text() for log in logs)


def test_outputs_go_to_files_and_the_terminal(script: Path, tmp_path: Path) -> None:
    where = ("--standalone", "--nproc-per-node", 2, "--log-dir", tmp_path / "logs")
    result = launched(*where, "--tee", "0:3,1:1", "--redirects=1:2", "--role=part", script)
    shown = sorted(result.stdout.splitlines())
    assert [line[:12] for line in shown] == ["[part0]:sum ", "[part1]:sum "], result
    logs = sorted((tmp_path / "logs").glob("*/attempt_0/*/std*.log"))
    assert [f"{log.parent.name}/{log.stem}" for log in logs] == [
        f"{rank}/{name}" for rank in "01" for name in ("stderr", "stdout")
    ]
    assert all("sum [1.0, 2.0]" in log.read_text() for log in logs if log.stem == "stdout")
    result = launched(*where[:3], "--local-ranks-filter=1", script)
    assert result.stdout == "sum [1.0, 2.0] 1 2 []\n", result


def test_each_process_may_see_its_gpu_alone() -> None:
    options = ("--standalone", "--virtual-local-rank", "--start-method=spawn", "--no-python")
    program = ("/bin/sh", "-c", "echo $LOCAL_RANK $CUDA_VISIBLE_DEVICES")
    result = launched(*options, "--nproc-per-node=2", *program, CUDA_VISIBLE_DEVICES="4,7")
    assert sorted(result.stdout.splitlines()) == ["0 4", "0 7"], result


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nnodes=1:2"], "cannot change"),
        (["--nnodes=2"], "needs --node-rank"),
        (["--nnodes=2", "--node-rank=2"], "not from 0 to 1"),
        (["--redirects=3"], "needs --log-dir"),
        (["--tee=3"], "needs --log-dir"),
        (["--nproc-per-node=many"], "give a number, auto, cpu or gpu"),
    ],
)
def test_mistakes_are_told(options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run.run(run.parse_args([*options, "program.py"]))


def test_functions_run_in_all_processes() -> None:
    config = LaunchConfig(1, 1, 2, max_restarts=0, monitor_interval=0.02)
    assert elastic_launch(config, os.getenv)("RANK") == {0: "0", 1: "1"}
    assert "RANK" not in os.environ


def test_errors_of_functions_are_told() -> None:
    config = LaunchConfig(1, 1, 2, max_restarts=0, monitor_interval=0.02)
    with pytest.raises(ChildFailedError, match="truediv failed: rank (?s:.*)ZeroDivisionError"):
        elastic_launch(config, operator.truediv)(1, 0)
    with pytest.raises(ValueError, match="no entrypoint"):
        elastic_launch(config, None)()


def test_paths_are_run_as_programs(tmp_path: Path) -> None:
    program = tmp_path / "place.sh"
    program.write_text(f'#!/bin/sh\necho "$RANK $1" > {tmp_path}/$LOCAL_RANK\n')
    program.chmod(0o755)
    config = LaunchConfig(1, 1, 2, max_restarts=0, monitor_interval=0.02)
    assert elastic_launch(config, str(program))(7) == {0: None, 1: None}
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["0 7\n", "1 7\n"]


def test_machines_find_each_other_as_on_the_command_line() -> None:
    config = LaunchConfig(
        2, 2, 1, "job", rdzv_endpoint="host:1234", rdzv_configs={"rank": 1, "join_timeout": 5}
    )
    args = run.parse_args(config.command_line(["x"]))
    assert (args.nnodes, args.node_rank, args.rdzv_id, args.standalone) == ("2:2", 1, "job", False)
    assert (args.rdzv_endpoint, args.rdzv_conf) == ("host:1234", "join_timeout=5")
