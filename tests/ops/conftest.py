from collections.abc import Iterator

import pytest

import rushlight as torch


@pytest.fixture(params=[1, 3], ids=["one_thread", "three_threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)
