import pytest
from shim.fake_driver import Driver


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The shim's driver, without the switches that a person has set."""
    for switch in ("RUSHLIGHT_SHIM_ORDER", "RUSHLIGHT_SHIM_GUARD", "RUSHLIGHT_SHIM_DEVICES"):
        monkeypatch.delenv(switch, raising=False)
    return Driver()
