"""DebugMode: what its log says, and where two runs part."""

from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils._debug_mode import DebugMode


def run() -> None:
    x = torch.ones(2, 3)
    torch.mm(torch.relu(x), x.t())


def test_ops_are_logged_with_their_arguments_and_results() -> None:
    with DebugMode() as debug:
        run()
        torch.add(torch.ones(1), 1, alpha=2)
        torch.cat([torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.bool)])
    assert debug.debug_string().splitlines()[:4] == [
        "    aten::ones([2, 3])  ->  t: f32[2, 3]",
        "    aten::relu(t: f32[2, 3])  ->  t: f32[2, 3]",
        "    aten::t(t: f32[2, 3])  ->  t: f32[3, 2]",
        "    aten::mm(t: f32[2, 3], t: f32[3, 2])  ->  t: f32[2, 2]",
    ]
    assert "aten::add.Tensor(t: f32[1], 1, alpha=2)  ->  t: f32[1]" in debug.debug_string()
    assert repr(debug.operators[-1]) == "aten::cat([t: bf16[1], t: b8[1]])  ->  t: bf16[2]"
    with debug:
        torch.ones(1)
    assert len(debug.logs) == 1


def test_ids_attributes_and_arguments_are_kept_if_asked_for() -> None:
    attributes = ["requires_grad"]
    with DebugMode(
        record_ids=True, record_tensor_attributes=attributes, record_output=False
    ) as log:
        x = torch.ones(1, requires_grad=True)
        x.exp().exp()
    first, second = log.debug_string().splitlines()[-2:]
    assert first == "    aten::exp(t$0: f32[1]{requires_grad=True})"
    assert "t$1" in second
    with DebugMode(store_original_args=True) as log:
        torch.relu(x)
    assert log.operators[0].args is not None and log.operators[0].args[0] is x


def test_lines_of_the_program_stand_above_what_they_called() -> None:
    with DebugMode(record_stack_trace=True) as debug:
        run()
    lines = debug.debug_string().splitlines()
    assert lines[0].startswith("    # File: ") and "in run, code: x = torch.ones(2, 3)" in lines[0]
    assert lines[2] == "" and "code: torch.mm(torch.relu(x), x.t())" in lines[3]
    assert "File" not in debug.debug_string(show_stack_trace=False)


def test_a_package_of_a_similar_name_is_a_program() -> None:
    place = f"{Path(torch.__file__).parent}_more/train.py"
    names: dict[str, Any] = {"torch": torch}
    exec(compile("def run():\n    torch.ones(1)", place, "exec"), names)
    with DebugMode(record_stack_trace=True) as debug:
        names["run"]()
    assert f"File: {place}:2 in run" in str(debug.logs[0].stack_trace)


def test_functions_and_modules_stand_above_their_ops() -> None:
    net = nn.Sequential(nn.ReLU())
    with DebugMode(record_nn_module=True, record_output=False) as debug:
        net(torch.ones(1))
        torch.ones(1)
    assert debug.debug_string().splitlines() == [
        "    aten::ones([1])",
        "    [nn.Mod] Sequential",
        "      [nn.Mod] Sequential.0",
        "        aten::relu(t: f32[1])",
        "    aten::ones([1])",
    ]
    with DebugMode(record_torchfunction=True, record_output=False) as debug:
        torch.relu(torch.ones(1))
    assert debug.debug_string().splitlines() == [
        "  torch.ones(1)",
        "      aten::ones([1])",
        "  torch.relu(t: f32[1])",
        "      aten::relu(t: f32[1])",
    ]


def test_hooks_log_and_record() -> None:
    def say(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
        return {"numel": result.numel()}

    with DebugMode() as debug, DebugMode.dispatch_hooks(log_hook=say), DebugMode.record_outputs():
        x = torch.ones(2).add_(1)
        x.zero_()
    assert repr(debug.operators[0]).endswith("  # {'numel': 2}")
    kept = debug.operators[1].record
    assert kept is not None and kept["output"].tolist() == [2, 2]
    with DebugMode() as debug:
        torch.ones(2)
    assert debug.operators[0].log is None


def test_hashes_tell_where_two_runs_part() -> None:
    def logs(start: float, **options: Any) -> Any:
        with DebugMode() as debug, DebugMode.log_tensor_hashes(**options):
            torch.full((2,), start).split(1)[1].mul_(2)
        return debug.logs

    first, second = logs(1.0, hash_inputs=True), logs(2.0, hash_inputs=True)
    assert first[1].log == {"input_hash": ((2.0, [None, None]), {}), "hash": (1.0, 1.0)}
    assert not DebugMode.check_hash_mismatches(first, logs(1.0, hash_inputs=True), True)
    found = DebugMode.check_hash_mismatches(first, second, compare_inputs=True)
    assert [(m["call"], m["pytree_path"], m["is_input_hash"]) for m in found] == [
        ("aten::full", "", False),
        ("aten::split_with_sizes", "[0]", False),
        ("aten::split_with_sizes", "[1]", False),
        ("aten::split_with_sizes", "[0][0]", True),
        ("aten::mul_.Tensor", "", False),
        ("aten::mul_.Tensor", "[0][0]", True),
    ]
    assert found[0]["hash1"] == 2 and found[0]["hash2"] == 4 and found[0]["rel_diff"] == 0.5
    assert isinstance(logs(1.0, hash_fn=["norm", "hash_tensor"])[0].log["hash"], tuple)
    with pytest.raises(ValueError, match="Log lengths"):
        DebugMode.check_hash_mismatches(first, second[:1])
    with pytest.raises(ValueError, match="don't match"):
        DebugMode.check_hash_mismatches(first, second[::-1])
    with pytest.raises(ValueError, match="has no input_hash"):
        DebugMode.check_hash_mismatches(first, logs(1.0), compare_inputs=True)
    with pytest.raises(ValueError, match="hash_fn must be of"):
        DebugMode.log_tensor_hashes("sha")
