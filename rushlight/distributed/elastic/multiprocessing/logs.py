"""Where the outputs of several processes go: which to files, which to the terminal too."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import TextIO

from rushlight.distributed.elastic.multiprocessing.errors import ERROR_FILE

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "Std"]


class Std(IntFlag):
    """Outputs of a process.

    Example:
        >>> from rushlight.distributed.elastic.multiprocessing import Std
        >>> Std.from_str("0:3,1:0")
        {0: <Std.ALL: 3>, 1: <Std.NONE: 0>}
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Returns what a text says: a number for all processes, or rank:number pairs.

        Raises:
            ValueError: for another text.
        """
        known = {str(int(outputs)): outputs for outputs in (cls.NONE, cls.OUT, cls.ERR, cls.ALL)}
        if vm in known:
            return known[vm]
        try:
            pairs = (part.split(":") for part in vm.split(","))
            return {int(rank): known[bits] for rank, bits in pairs}
        except (ValueError, KeyError):
            raise ValueError(
                f"Std: {vm!r} is neither a number from 0 to 3 nor a list of pairs like 0:3,1:1."
            ) from None


@dataclass
class LogsDest:
    """The files of a few processes, by local rank.

    Attributes:
        stdouts, stderrs: of the outputs; "" for those that go to the terminal alone.
        tee_stdouts, tee_stderrs: of those that are shown on the terminal too.
        error_files: what record writes.
    """

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)


class LogsSpecs(ABC):
    """What is to be done with outputs.

    Args:
        log_dir: folder of the files.
        redirects: the outputs that go to files, for all or by local rank.
        tee: those that are shown on the terminal too.
        local_ranks_filter: the ranks whose outputs are shown; those of others go to files. None
            shows all.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        self._root_log_dir = log_dir
        self._redirects = redirects
        self._tee = tee
        self._local_ranks_filter = local_ranks_filter

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Returns the files of processes, by the environments that they get."""

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder of the files."""


class DefaultLogsSpecs(LogsSpecs):
    """Has files LOG_DIR/RUN_ID_.../attempt_N/LOCAL_RANK/stdout.log, and stderr.log and error.json.

    RUN_ID and N are TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT of the environments. Without
    a log_dir it is a new temporary folder.

    Raises:
        NotADirectoryError: if log_dir is no folder.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        folder = tempfile.mkdtemp(prefix="rushlight-elastic-") if log_dir is None else log_dir
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise NotADirectoryError(f"log_dir: {folder} is a file. Give a folder.")
        os.makedirs(folder, exist_ok=True)
        super().__init__(folder, redirects, tee, local_ranks_filter)
        self._run_folder: str | None = None

    @property
    def root_log_dir(self) -> str:
        """The folder of the files."""
        return str(self._root_log_dir)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Makes the folders of processes, and returns their files. See LogsSpecs."""
        first = next(iter(envs.values()), {})
        if self._run_folder is None:
            name = first.get("TORCHELASTIC_RUN_ID", "test_run_id")
            self._run_folder = tempfile.mkdtemp(prefix=f"{name}_", dir=self.root_log_dir)
        attempt = f"attempt_{first.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        shutil.rmtree(os.path.join(self._run_folder, attempt), ignore_errors=True)
        files = LogsDest()
        for rank, env in envs.items():
            folder = os.path.join(self._run_folder, attempt, str(rank))
            os.makedirs(folder)
            shown = self._local_ranks_filter is None or rank in self._local_ranks_filter
            doubled = _of_rank(self._tee, rank) if shown else Std.NONE
            kept = doubled | _of_rank(self._redirects, rank) if shown else Std.ALL
            for output, name, all_of, tees in (
                (Std.OUT, "stdout.log", files.stdouts, files.tee_stdouts),
                (Std.ERR, "stderr.log", files.stderrs, files.tee_stderrs),
            ):
                path = os.path.join(folder, name)
                all_of[rank] = path if output in kept else ""
                tees |= {rank: path} if output in doubled else {}
            files.error_files[rank] = os.path.join(folder, "error.json")
            env[ERROR_FILE] = files.error_files[rank]
        return files


def _of_rank(outputs: Std | Mapping[int, Std], rank: int) -> Std:
    return outputs.get(rank, Std.NONE) if isinstance(outputs, Mapping) else outputs


class Tail:
    """Shows what is written to files on the terminal, each line with a label, until it is stopped.

    Args:
        files: the files, by local rank, which need not exist yet.
        labels: what stands before the lines of each.
        target: where they go.
    """

    _PAUSE = 0.1  # seconds between two looks

    def __init__(self, files: Mapping[int, str], labels: Mapping[int, str], target: TextIO) -> None:
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, args=(path, labels[rank], target), daemon=True)
            for rank, path in files.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Returns when all that was written has been shown."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, path: str, label: str, target: TextIO) -> None:
        while not os.path.exists(path) and not self._ended.wait(self._PAUSE):
            pass
        if not os.path.exists(path):
            return
        # A letter may be written in two parts, so bytes are decoded with what comes before.
        letters = codecs.getincrementaldecoder("utf-8")("replace")
        decoder = io.IncrementalNewlineDecoder(letters, translate=True)
        with open(path, "rb") as file:
            line, is_last = "", False
            while not is_last:
                is_last = self._ended.is_set()  # what was written before is read below
                *lines, line = (line + decoder.decode(file.read(), is_last)).split("\n")
                target.writelines(f"{label}{line}\n" for line in lines)
                target.flush()
                self._ended.wait(self._PAUSE)
            target.write(f"{label}{line}\n" if line else "")
            target.flush()
