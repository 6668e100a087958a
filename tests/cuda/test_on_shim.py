"""Devices, streams, events and statistics of rushlight.cuda, on the shim in place of a GPU."""


def test_a_device_is_found_and_described(run_on_shim) -> None:
    run_on_shim(
        """
        import rushlight as torch
        assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
        assert not torch.cuda.is_initialized()
        torch.cuda.init()
        assert torch.cuda.is_initialized() and torch.cuda.current_device() == 0
        properties = torch.cuda.get_device_properties("cuda:0")
        assert torch.cuda.get_device_name() == properties.name
        assert torch.cuda.get_device_capability(0) == (properties.major, properties.minor)
        assert properties.total_memory > 0 and len(properties.uuid) == 36
        free, total = torch.cuda.mem_get_info()
        assert 0 < free <= total
        for wrong in (31, "cuda:31"):
            try:
                torch.cuda.set_device(wrong)
            except RuntimeError as error:
                assert "invalid device ordinal" in str(error)
            else:
                raise AssertionError
        torch.cuda.set_device(0)
        with torch.cuda.device("cuda:0"):
            torch.cuda.synchronize()
        """
    )


def test_streams_and_events_follow_pytorch(run_on_shim) -> None:
    run_on_shim(
        """
        import rushlight as torch
        default = torch.cuda.default_stream()
        assert torch.cuda.current_stream() == default and default.cuda_stream == 0
        stream = torch.cuda.Stream(priority=-1)
        assert stream != default and stream.device == torch.device("cuda:0")
        assert len({stream, default, torch.cuda.default_stream()}) == 2
        with torch.cuda.stream(stream):
            assert torch.cuda.current_stream() == stream
            with torch.cuda.stream(default):
                assert torch.cuda.current_stream() == default
            assert torch.cuda.current_stream() == stream
        assert torch.cuda.current_stream() == default
        stream.wait_stream(default)
        torch.cuda.set_stream(stream)
        assert torch.cuda.current_stream() == stream
        torch.cuda.set_stream(default)

        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        stream.wait_event(start)
        end.record(stream)
        end.synchronize()
        assert start.query() and end.query() and stream.query()
        assert start.elapsed_time(end) >= 0 and start.device == torch.device("cuda:0")
        try:
            start.elapsed_time(torch.cuda.Event())
        except ValueError as error:
            assert "enable_timing=True" in str(error)
        else:
            raise AssertionError
        stream.synchronize()
        """
    )


def test_pinned_copies_hold_the_same_numbers(run_on_shim) -> None:
    run_on_shim(
        """
        import rushlight as torch
        x = torch.arange(12).reshape(3, 4).t()
        assert not x.is_pinned()
        pinned = x.pin_memory()
        assert pinned.is_pinned() and pinned.pin_memory() is pinned and pinned[1:].is_pinned()
        assert torch.equal(pinned, x) and pinned.is_contiguous()
        assert torch.empty(0).pin_memory().shape == (0,)
        address = pinned.data_ptr()
        del pinned
        assert x.pin_memory().data_ptr() == address
        """
    )


def test_a_forked_child_is_told_to_spawn(run_on_shim) -> None:
    run_on_shim(
        """
        import os
        import rushlight as torch
        torch.cuda.init()
        child = os.fork()
        if child == 0:
            assert not torch.cuda.is_available()
            try:
                torch.cuda.init()
            except RuntimeError as error:
                os._exit(0 if "'spawn' start method" in str(error) else 1)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        """
    )


def test_a_child_may_use_cuda_that_its_parent_did_not_touch(run_on_shim) -> None:
    run_on_shim(
        """
        import os
        import rushlight as torch
        child = os.fork()
        if child == 0:
            torch.cuda.init()
            os._exit(0 if torch.cuda.is_initialized() else 1)
        assert os.waitpid(child, 0)[1] == 0
        torch.cuda.init()
        """
    )


def test_cuda_needs_its_compiler_too(run_on_shim) -> None:
    said = run_on_shim(
        """
        import rushlight as torch
        assert not torch.cuda.is_available()
        try:
            torch.cuda.init()
        except RuntimeError as error:
            print(error)
        """,
        RUSHLIGHT_NVRTC="/nowhere/libnvrtc.so",
    )
    assert said.startswith("CUDA cannot be used. NVRTC: /nowhere/libnvrtc.so was not found.")
    assert "pip install rushlight[cuda]" in said
