"""The profiler: what is noted, averages, tables, traces and schedules."""

import gzip
import json
import threading

import pytest

import rushlight as torch
from rushlight.profiler import DeviceType, ProfilerAction, profile, record_function, schedule


def names(events) -> list[str]:
    return [event.name for event in events]


def test_ops_nodes_and_ranges_are_noted_with_what_they_ran_in() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile() as prof, record_function("step"):
        x.exp().sum().backward()
    events = prof.events()
    assert names(events)[:3] == ["step", "aten::exp", "aten::sum"]
    assert {"SumBackward0", "ExpBackward0", "AccumulateGrad"} <= set(names(events))
    step = events[0]
    assert all(event.cpu_parent is not None for event in events[1:])
    assert step.cpu_children[0].name == "aten::exp"
    inside = sum(child.cpu_time_total for child in step.cpu_children)
    assert step.self_cpu_time_total == pytest.approx(step.cpu_time_total - inside)
    for event in events[1:]:
        assert event.cpu_parent.time_range.start <= event.time_range.start
        assert event.time_range.end <= event.cpu_parent.time_range.end


def test_nothing_is_noted_outside_or_on_other_threads() -> None:
    with profile() as prof:
        thread = threading.Thread(target=lambda: torch.ones(2) + 1)
        thread.start()
        thread.join()
    torch.ones(2) + 1
    assert not prof.events()


def test_shapes_memory_lines_and_operations() -> None:
    a, b = torch.ones(8, 4), torch.ones(4, 2)
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as prof:
        c = a @ b
        big = torch.zeros(1 << 20)
        del big
        c + 1
    assert prof.record_shapes and prof.profile_memory and prof.with_stack and prof.with_flops
    assert not prof.with_modules
    matmul, zeros = prof.events()[0], next(e for e in prof.events() if e.name == "aten::zeros")
    assert matmul.input_shapes == [[8, 4], [4, 2]]
    assert matmul.flops == 2 * 8 * 4 * 2
    assert matmul.stack[0].startswith("test_profiler.py:")
    assert zeros.cpu_memory_usage > 4_000_000
    table = prof.key_averages(group_by_stack_n=1).table()
    for title in ("CPU Mem", "Source Location", "Total FLOPs", "# of Calls"):
        assert title in table


def test_operations_are_shown_in_the_unit_of_the_smallest_count() -> None:
    with profile(record_shapes=True, with_flops=True) as prof:
        torch.ones(50, 20) @ torch.ones(20, 10)
        torch.ones(100, 20) @ torch.ones(20, 100)
    table = prof.key_averages(group_by_input_shape=True).table()
    assert "Total KFLOPs" in table and " 20.000" in table and " 400.000" in table


def test_operations_of_what_an_op_is_made_of_count_once() -> None:
    with profile(record_shapes=True, with_flops=True) as prof:
        torch.ones(2, 10, 10).bmm(torch.ones(2, 10, 10))
    assert sum(event.flops for event in prof.events()) == 2 * 2 * 10**3


def test_optimizers_and_loaders_are_named_ranges() -> None:
    class Descent(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = Descent([weight], lr=0.1)
    with profile() as prof:
        for batch in torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2):
            optimizer.zero_grad()
            (weight * batch).sum().backward()
            optimizer.step()
    counts = {e.key: e.count for e in prof.key_averages() if e.is_user_annotation}
    assert counts == {
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": 3,  # the last one finds none
        "Optimizer.zero_grad#Descent.zero_grad": 2,
        "Optimizer.step#Descent.step": 2,
    }
    assert [e.is_user_annotation for e in prof.events() if e.name == "aten::mul"] == [False, False]


def test_averages_add_up() -> None:
    x = torch.ones(4)
    with profile(record_shapes=True) as prof:
        for size in (4, 4, 2):
            x[:size] * 2
    multiplied = [e for e in prof.events() if e.name == "aten::mul"]
    (average,) = [e for e in prof.key_averages() if e.key == "aten::mul"]
    assert average.count == 3
    assert average.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in multiplied))
    assert average.cpu_time == pytest.approx(average.cpu_time_total / 3)
    by_shape = [e for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::mul"]
    assert len(prof.events().key_averages(group_by_input_shapes=True)) == len(
        prof.key_averages(group_by_input_shape=True)
    )
    assert sorted(e.count for e in by_shape) == [1, 2]
    for more in ("group_by_overload_name", "include_python_functions"):
        assert len(prof.key_averages(**{more: True})) == len(prof.key_averages())
    for event in (average, *multiplied):
        assert event.device_time == event.device_time_total == event.self_device_time_total == 0
        assert event.device_type == DeviceType.CPU and not event.is_async


def test_activities_may_come_with_the_events_that_are_wanted() -> None:
    cpu = torch.profiler.ProfilerActivity.CPU
    assert profile(activities=[{cpu: ["cpu_op"]}]).activities == {cpu}
    assert profile(activities=[]).activities == torch.profiler.supported_activities()


def test_tables_are_sorted_and_cut() -> None:
    with profile() as prof:
        for _ in range(3):
            torch.ones(2) * 2
        torch.zeros(1 << 18)
    rows = prof.key_averages().table(sort_by="count", row_limit=2, header="Where").splitlines()
    assert rows[1] == "Where"
    assert rows[5].split()[0] in ("aten::ones", "aten::mul")
    assert len(rows) == 9  # two rules of the header, two rows, the sum
    assert "ms" in prof.key_averages().table(time_unit="ms")
    first = prof.key_averages().table(sort_by="self_cpu_time_total").splitlines()[3]
    assert first.startswith("aten::")


def test_traces_are_written(tmp_path) -> None:
    with profile(record_shapes=True) as prof, record_function("part", "3"):
        torch.ones(2) + 1
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_chrome_trace(tmp_path / "trace.json.gz")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace == json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert [event["name"] for event in trace["traceEvents"]] == [
        "part",
        "aten::ones",
        "aten::add",
    ]
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in trace["traceEvents"])
    prof.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    assert "part;aten::add" in (tmp_path / "stacks.txt").read_text()


def test_a_schedule_chooses_the_steps(tmp_path) -> None:
    saved = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(i).name for i in range(10)] == [
        "NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE",
        "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE",
    ]  # fmt: skip
    with profile(schedule=plan, on_trace_ready=lambda p: saved.append(names(p.events()))) as prof:
        for _ in range(10):
            torch.ones(1)
            prof.step()
    assert [[n for n in events if n.startswith("Profiler")] for events in saved] == [
        ["ProfilerStep#3", "ProfilerStep#4"],
        ["ProfilerStep#7", "ProfilerStep#8"],
    ]
    assert all(events.count("aten::ones") == 2 for events in saved)
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "traces"))
    with profile(on_trace_ready=handler):
        torch.ones(1)
    assert len(list((tmp_path / "traces").glob("*.pt.trace.json"))) == 1
    assert plan(0) is ProfilerAction.NONE


def test_the_older_form() -> None:
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        torch.ones(3).sum()
    assert prof.key_averages()[0].key == "aten::ones"
    assert "aten::sum" in str(prof)
    assert prof.self_cpu_time_total > 0
    with torch.autograd.profiler.profile(enabled=False) as prof:
        torch.ones(3)
    assert not prof.function_events


def test_mistakes() -> None:
    with profile(), pytest.raises(RuntimeError, match="already enabled on this thread"):
        profile().start()
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        schedule(wait=1, warmup=0, active=0)
    with profile() as prof:
        torch.ones(1)
    with pytest.raises(ValueError, match="time_unit is 'h'"):
        prof.key_averages().table(time_unit="h")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        prof.key_averages().table(sort_by="nonsense")
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks("x", "fun")


def test_profiling_is_over_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), profile():
        1 / 0  # noqa: B018
    with profile() as prof:
        torch.ones(1)
    assert names(prof.events()) == ["aten::ones"]


def test_autocast_is_profiled() -> None:
    with profile() as prof, torch.autocast("cpu"):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype == torch.bfloat16
    assert "aten::matmul" in names(prof.events())


def test_a_range_around_the_end_of_its_profile_ends_nothing_else() -> None:
    outer, inner = profile(), profile()
    outer.start()
    torch.ones(1) + 1
    with record_function("around"):
        outer.stop()
        inner.start()
        torch.zeros(1)
    torch.ones(1)
    inner.stop()
    assert names(outer.events())[-1] == "around"
    assert names(inner.events()) == ["aten::zeros", "aten::ones"]


def test_a_hook_may_start_another_profile() -> None:
    prof = profile()
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).exp().sum()
    prof.start()
    for _ in range(5):
        torch.ones(1)  # so that the range of the hook's node is not in the next profile

    def turn(grad: torch.Tensor) -> None:
        prof.stop()
        prof.start()

    y.grad_fn.register_hook(lambda inputs, outputs: turn(outputs[0]))
    x.register_hook(turn)
    y.backward()
    prof.stop()
    assert all(event.time_range.elapsed_us() >= 0 for event in prof.events())


@pytest.mark.parametrize("name", ["emit_nvtx", "emit_itt"])
def test_marks_for_other_profilers_are_refused_clearly(name) -> None:
    marks = getattr(torch.autograd.profiler, name)
    with marks(enabled=False, record_shapes=True) as nothing:
        assert nothing is None
    with pytest.raises(RuntimeError, match=f"{name}: ops are not marked"), marks():
        pass


def test_traces_say_what_programs_add(tmp_path) -> None:
    with profile() as prof:
        assert torch.autograd._profiler_enabled()
        torch.ones(2) + 1
        prof.add_metadata("model", "tiny")
        prof.add_metadata_json("sizes", "[1, 2]")
    assert not torch.autograd._profiler_enabled()
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert (trace["model"], trace["sizes"]) == ("tiny", [1, 2]) and trace["traceEvents"]
