"""What programs do with the dictionaries of a module's members, on PyTorch itself."""

import member_programs
import pytest

pytorch = pytest.importorskip("torch")


@pytest.mark.parametrize("program", member_programs.PROGRAMS, ids=lambda p: p.__name__)
def test_dictionaries_of_members(program) -> None:
    program(pytorch)
