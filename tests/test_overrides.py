"""Subclasses of Tensor and other classes that take over functions."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any, ClassVar

import numpy as np
import pytest

import rushlight as torch


class Sub(torch.Tensor):
    """Takes over in the default way."""


class Further(Sub):
    """The same, for two classes in one call."""


class Logged(torch.Tensor):
    """Notes what was called."""

    calls: ClassVar[list[Any]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append((func, types, args, kwargs))
        return super().__torch_function__(func, types, args, kwargs)


def sub(cls: type[torch.Tensor] = Sub) -> torch.Tensor:
    return torch.arange(1.0, 4.0).as_subclass(cls)


FUNCTIONS = {
    "x + 1": lambda x: x + 1,
    "1 - x": lambda x: 1 - x,
    "x * x": lambda x: x * x,
    "ones / x": lambda x: torch.ones(3) / x,
    "2 ** x": lambda x: 2**x,
    "-x": lambda x: -x,
    "abs": abs,
    "x == 1": lambda x: x == 1,
    "x @ x": lambda x: x @ x,
    "x[0]": lambda x: x[0],
    "x[mask]": lambda x: x[x > 1],
    "ones[index]": lambda x: torch.ones(4)[x.long()],
    "sum": lambda x: x.sum(),
    "add": lambda x: torch.add(torch.ones(3), other=x),
    "cat": lambda x: torch.cat([torch.ones(1), x]),
    "float": lambda x: x.double(),
    "to": lambda x: x.to(torch.int64),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "clone": lambda x: x.clone(),
    "T": lambda x: x.view(3, 1).T,
    "relu": lambda x: torch.nn.functional.relu(x),
    "linear": lambda x: torch.nn.Linear(3, 2)(x),
    "split": lambda x: x.split(2)[1],
    "max": lambda x: x.max(0).values,
    "iteration": lambda x: next(iter(x)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_stay_in_the_subclass_and_have_the_same_values(name: str) -> None:
    torch.manual_seed(0)
    result = FUNCTIONS[name](sub())
    torch.manual_seed(0)
    expected = FUNCTIONS[name](torch.arange(1.0, 4.0))
    assert type(result) is Sub and type(expected) is torch.Tensor
    assert result.tolist() == expected.tolist()


def test_writing_in_place_keeps_the_object() -> None:
    x = sub()
    before = x
    x += 1
    x.mul_(2)
    x[0] = torch.tensor(7.0)
    assert x is before and type(x) is Sub and x.tolist() == [7, 6, 8]
    y = torch.zeros(3)
    y[:] = sub()
    y += sub()
    assert y.tolist() == [2, 4, 6]
    out = torch.empty(3)
    assert torch.add(sub(), 1, out=out) is not None and out.tolist() == [2, 3, 4]


def test_the_function_and_its_arguments_are_handed_over() -> None:
    Logged.calls.clear()
    x = sub(Logged)
    torch.add(x, 2, alpha=3)
    x.add(1)
    x - 1
    x[0]
    torch.stack([torch.ones(3), x], dim=1)
    functions = [call[0] for call in Logged.calls]
    assert functions[:2] == [torch.add, torch.Tensor.add]
    assert functions[2:4] == [torch.Tensor.sub, torch.Tensor.__getitem__]
    assert functions[4] is torch.stack
    _, types, args, kwargs = Logged.calls[0]
    assert types == (Logged,) and args[0] is x and args[1] == 2 and kwargs == {"alpha": 3}
    assert Logged.calls[4][2][0][1] is x and Logged.calls[4][3] == {"dim": 1}


def test_a_subclass_may_answer_by_itself() -> None:
    class Answers(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "mine" if func is torch.mean else NotImplemented

    x = sub(Answers)
    assert torch.mean(x) == "mine"
    with pytest.raises(TypeError, match="no implementation found for"):
        torch.add(x, 1)


def test_other_classes_take_over_what_cannot_read_them() -> None:
    class Scalar:
        def __torch_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return func.__name__, types, len(args), kwargs

    duck = Scalar()
    assert torch.add(duck, 1) == ("add", (Scalar,), 2, {})
    assert torch.ones(2) * duck == ("mul", (Scalar,), 2, {})
    assert torch.cat([duck, duck], dim=0) == ("cat", (Scalar,), 1, {"dim": 0})
    assert torch.overrides.is_tensor_like(duck) and not torch.overrides.is_tensor_like(1)
    with pytest.raises(TypeError):
        torch.add(object(), 1)


def test_subclasses_come_before_their_bases() -> None:
    assert type(sub() + sub(Further)) is Further
    assert type(torch.add(sub(Further), sub())) is Further
    with pytest.raises(TypeError, match="no implementation found"):
        sub() + sub(Logged)


def test_errors_of_the_method_come_through() -> None:
    class Broken(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("broken")

    x = sub(Broken)
    uses: Any = (
        *(lambda: x + 1, lambda: torch.exp(x), lambda: x[0], lambda: x.__setitem__(0, 1)),
        *(lambda: repr(x), x.__dlpack_device__, lambda: torch.ones(2).to(x)),
    )
    for use in uses:
        with pytest.raises(KeyError, match="broken"):
            use()


def test_a_scope_sees_plain_tensors() -> None:
    x = sub(Logged)
    Logged.calls.clear()
    with torch.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
        assert not torch.overrides.has_torch_function((x,))
        with torch._C.DisableTorchFunctionSubclass():
            x.sum()
        x.sum()
        seen: list[type] = []
        thread = threading.Thread(target=lambda: seen.append(type(sub() + 1)))
        thread.start()
        thread.join()
        assert seen == [Sub]
    assert not Logged.calls
    with pytest.raises(RuntimeError):
        x @ torch.ones(5)
    assert type(x + 1) is Logged


def test_parameters_and_buffers_opt_out() -> None:
    class Mine(torch.nn.Parameter):
        pass

    for x in (
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Buffer(torch.ones(2)),
        Mine(torch.ones(2)),
    ):
        assert type(x + 1) is torch.Tensor and not torch.overrides.has_torch_function_unary(x)

    class Opted(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert type(sub(Opted) + 1) is torch.Tensor


def test_functions_in_python_can_be_taken_over() -> None:
    def double(x: Any) -> Any:
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(double, (x,), x)
        return x * 2

    @torch.overrides.wrap_torch_function(lambda x: (x,))
    def triple(x: Any) -> Any:
        return x * 3

    Logged.calls.clear()
    assert type(double(sub(Logged))) is Logged
    assert type(triple(sub(Logged))) is Logged
    assert [call[0] for call in Logged.calls] == [double, triple]
    assert triple(2) == 6 and double(2) == 4


class Redispatched(torch.Tensor):
    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        cls.calls.append(func.__name__)
        return torch.overrides.redispatch_function(func, types, args, kwargs)


def test_what_a_redispatched_function_calls_is_taken_over() -> None:
    def double_and_one(x: Any) -> Any:
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(double_and_one, (x,), x)
        return x.mul(2) + 1

    x = torch.ones(2).as_subclass(Redispatched)
    Redispatched.calls.clear()
    assert type(double_and_one(x)) is torch.Tensor
    assert Redispatched.calls == ["double_and_one", "mul"]
    Redispatched.calls.clear()
    assert type(torch.nn.functional.softmin(x, 0)) is torch.Tensor
    assert Redispatched.calls[0] == "softmin" and len(Redispatched.calls) > 1
    assert len(x) == 2 and x.shape == (2,) and type(copy.deepcopy(x)) is Redispatched


def test_a_mode_that_redispatches_within_itself_is_told_once_of_an_op() -> None:
    class Telling(torch.overrides.TorchFunctionMode):
        names: ClassVar[list[str]] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            self.names.append(func.__name__)
            with self:
                return torch.overrides.redispatch_function(func, types, args, kwargs)

    with Telling() as mode:
        torch.ones(2).mul(2)
    assert mode.names == ["ones", "mul"]


def test_history_goes_through_as_subclass() -> None:
    x = torch.arange(3.0, requires_grad=True)
    y = x.as_subclass(Sub)
    assert type(y.grad_fn).__name__ and y.data_ptr() == x.data_ptr()
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 2, 4]
    leaf = Sub([1.0, 2.0]).requires_grad_()
    (leaf * 3).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [3, 3]
    assert type(y.as_subclass(torch.Tensor)) is torch.Tensor
    with pytest.raises(TypeError, match="subclass of Tensor"):
        x.as_subclass(int)


def test_attributes_and_printing_of_a_subclass() -> None:
    class Named(torch.Tensor):
        name_: str

    x = sub(Named)
    x.name_ = "a"
    assert repr(x) == "Named([1., 2., 3.])" and x.name_ == "a"
    assert np.asarray(x).tolist() == [1, 2, 3]
    assert torch.overrides.resolve_name(torch.add) == "torch.add"
    assert torch.overrides.resolve_name(len) is None
    assert torch.overrides.is_tensor_method_or_property(torch.Tensor.add_)


def asked(use: Any, cls: type[torch.Tensor] = Logged) -> list[Any]:
    """The functions that an instance of a class is told of while it is used."""
    x = sub(cls)
    Logged.calls.clear()
    use(x)
    return [call[0] for call in Logged.calls]


class Deeper(Logged):
    """A class of a class that is told, which answers by itself, too."""

    parts: ClassVar[list[Any]] = []

    def __getattr__(self, name: str) -> str:
        return f"no {name}"

    @property
    def layout(self) -> Any:
        return "its own"


def test_a_method_of_its_own_is_told_of_attributes_and_questions() -> None:
    T: Any = torch.Tensor
    for cls in Logged, Deeper:
        assert asked(lambda x: x.shape, cls) == [T.shape.__get__]
        assert asked(lambda x: x.to(torch.float64).size(dim=0), cls) == [T.to, T.size]
        assert asked(lambda x: setattr(x, "requires_grad", True), cls) == [T.requires_grad.__set__]
        assert asked(lambda x: x.sum().item(), cls) == [T.sum, T.item]
        assert asked(len, cls) == [T.__len__]
        assert asked(lambda x: float(x[1]), cls)[1:] == [T.__float__]
        assert asked(copy.deepcopy, cls)[0] is T.__deepcopy__
    assert asked(lambda x: (x.other, x.parts, x.layout), Deeper) == []
    x = sub(Deeper)
    assert (x.other, x.layout, x.shape, x.parts) == ("no other", "its own", (3,), [])
    assert x.numel.__name__ == "numel" and type(x.double()) is Deeper

    class Quiet(Logged):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert asked(lambda x: (x.shape, len(x), x.item), Quiet) == []
    with torch.DisableTorchFunctionSubclass():
        assert asked(lambda x: (x.shape, len(x), x.size())) == []


def test_answers_of_a_method_of_its_own_are_taken() -> None:
    class Odd(torch.Tensor):
        answers: ClassVar[dict[Any, Any]] = {}

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return cls.answers.get(func, NotImplemented)

    T: Any = torch.Tensor
    Odd.answers = {T.shape.__get__: "s", T.__len__: 7, T.__bool__: [], T.__int__: 5, T.__index__: 1}
    x = sub(Odd)
    assert x.shape == "s" and len(x) == 7 and not x and int(x) == 5 and "abc"[x] == "b"
    with pytest.raises(TypeError, match="no implementation found for"):
        x.dtype  # noqa: B018
    for answer, error in ((-1, ValueError), ("a", TypeError), (2**70, OverflowError)):
        Odd.answers = {T.__len__: answer, T.__float__: answer}
        with pytest.raises(error):
            len(x)
        with pytest.raises(TypeError, match="float"):
            float(x)


def test_the_gradient_keeps_the_class_that_it_has() -> None:
    x = sub(Logged).requires_grad_()
    plain: Any = torch.ones(3)
    x.grad = plain
    assert type(x.grad) is torch.Tensor and x.grad is plain
    T: Any = torch.Tensor
    assert T.grad.__get__ in torch.overrides.get_default_nowrap_functions()


def test_all_that_is_told_can_be_named_and_stood_in_for() -> None:
    names, stand_ins = torch.overrides.resolve_name, torch.overrides.get_testing_overrides()
    T: Any = torch.Tensor
    for function, name in (
        (T.shape.__get__, "shape.__get__"),
        (T.layout.__get__, "layout.__get__"),
        (T.size, "size"),
        (T.to, "to"),
        (T.__len__, "__len__"),
        (T.__contains__, "__contains__"),
    ):
        assert names(function) == f"torch.Tensor.{name}" and stand_ins[function](1) == -1
        assert torch.overrides.is_tensor_method_or_property(function)
    assert stand_ins.keys() == {
        f for group in torch.overrides.get_overridable_functions().values() for f in group
    }


class Counts(torch.overrides.TorchFunctionMode):
    """Notes the names of the functions that are called."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_all_ops_of_its_thread() -> None:
    layer = torch.nn.Linear(2, 2)
    with Counts() as counts:
        x = torch.ones(2)
        y = -(x + 1)
        y[0] = x[1]
        layer(y)
        thread = threading.Thread(target=lambda: torch.zeros(3).exp())
        thread.start()
        thread.join()
    x.exp()
    assert counts.names == ["ones", "add", "neg", "__getitem__", "__setitem__", "linear"]


def test_a_mode_and_classes_are_told_of_questions_about_dtypes() -> None:
    x = torch.ones(2)
    with Counts() as counts:
        assert torch.result_type(x, 1) is torch.result_type(tensor=x, other=1) is torch.float32
        assert torch.result_type(2, 3) is torch.int64
        assert torch.can_cast(torch.int, torch.float)
        assert torch.can_cast(from_=torch.int, to=torch.float)
        assert torch.promote_types(torch.int, type2=torch.half) is torch.float16
    assert counts.names == ["result_type"] * 3 + ["can_cast"] * 2 + ["promote_types"]

    class Told(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return func, types, len(args), kwargs

    told = x.as_subclass(Told)
    assert torch.result_type(1, told) == (torch.result_type, (Told,), 2, {})
    assert torch.result_type(told, other=1) == (torch.result_type, (Told,), 1, {"other": 1})


@pytest.mark.parametrize("options", [{}, {"to": 1}, {"other": 1, "tensor": 2}, {"tensor": 1}])
def test_result_type_takes_two_arguments(options: dict[str, Any]) -> None:
    for args in ((1,), (1, 2)) if options else ((), (1,), (1, 2, 3)):
        with pytest.raises(TypeError):
            torch.result_type(*args, **options)


def test_a_mode_is_told_of_attributes_and_questions() -> None:
    class Mine(torch.Tensor):
        pass

    def ask(x: Any) -> Any:
        found = x.shape, x.requires_grad, x.T, x.grad, x.is_cuda
        x.requires_grad = True
        return *found, x.size(), x[0].item(), len(x), bool(x[1] > 0), x.to(torch.float64)

    class Told(torch.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            self.told: list[str] = []

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.told.append(torch.overrides.resolve_name(func) or func.__name__)
            return func(*args, **(kwargs or {}))

    for kind in (torch.Tensor, torch.nn.Parameter, Mine):
        x = torch.ones(2, 1).as_subclass(kind)
        plain = ask(x)
        for _ in range(150):  # more often than the lookup of attributes is put back
            with Told() as mode:
                answers = ask(x)
            assert [type(a) for a in answers] == [type(a) for a in plain]
            assert [name.removeprefix("torch.Tensor.") for name in mode.told] == [
                *("shape.__get__", "requires_grad.__get__", "T.__get__", "grad.__get__"),
                *("is_cuda.__get__", "requires_grad.__set__", "size", "__getitem__", "item"),
                *("__len__", "__getitem__", "gt", "__bool__", "to"),
            ]
        ask(x)
        assert len(mode.told) == 14


def test_classes_keep_their_own_lookup_of_attributes_under_a_mode() -> None:
    class Asked(torch.Tensor):
        def __getattr__(self, name: str) -> Any:
            return f"no {name}"

    x: Any = torch.ones(2).as_subclass(Asked)
    with Counts() as counts:
        assert (x.ndim, x.nothing) == (1, "no nothing") and "__get__" in counts.names

        class Made(Asked):
            pass

        Asked.__getattr__ = lambda self, name: name  # pyright: ignore[reportAttributeAccessIssue]
        y: Any = torch.ones(2).as_subclass(Made)
        y.note = 3
        assert (y.nothing, y.note) == ("nothing", 3)
    assert (x.ndim, x.nothing, y.nothing, y.note) == (1, "nothing", "nothing", 3)


def test_a_mode_sees_what_makes_tensors_of_data() -> None:
    with Counts() as counts:
        x = torch.tensor([1, 2], dtype=torch.float64)
        torch.as_tensor(x, device="cpu")
    assert counts.names == ["tensor", "as_tensor"] and x.tolist() == [1, 2]

    class OnMeta(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **{**(kwargs or {}), "device": "meta"})

    with OnMeta():
        made = torch.tensor([1.0]), torch.zeros(2)
    assert all(x.is_meta for x in made)


def test_modes_nest_and_end_with_errors() -> None:
    class Refuses(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("refused")

    class Leaves(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    x = torch.ones(2)
    with Counts() as outer, Counts() as inner:
        x.exp()
    assert outer.names == inner.names == ["exp"]
    with pytest.raises(KeyError, match="refused"), Refuses():
        x.exp()
    with Leaves(), pytest.raises(TypeError, match="no implementation found"):
        x.exp()
    with pytest.raises(NotImplementedError), torch.overrides.TorchFunctionMode():
        x.exp()
    assert x.exp().shape == (2,)
    with pytest.raises(RuntimeError, match="no mode is in force"):
        torch._C._pop_function_mode()


def test_a_mode_comes_before_subclasses() -> None:
    Logged.calls.clear()
    with Counts() as counts, torch.DisableTorchFunctionSubclass():
        assert type(sub(Logged) + 1) is torch.Tensor
    assert "add" in counts.names and not Logged.calls
    with Counts() as counts:
        x = sub(Logged)
        assert type(x * 2) is Logged and type(x.data) is Logged
        assert type(torch.nn.Parameter(torch.ones(1)).data) is torch.Tensor
    assert "mul" in counts.names and Logged.calls


def test_copies_and_pickles_keep_class_and_attributes() -> None:
    for cls in (Sub, Logged, torch.Tensor):
        x = torch.arange(3.0).as_subclass(cls)
        x.note = ["a"]
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert type(y) is cls and y.tolist() == [0, 1, 2]
            assert y.note == ["a"] and y.note is not x.note
    half = torch.ones(2, dtype=torch.bfloat16).as_subclass(Sub).requires_grad_()
    y = pickle.loads(pickle.dumps(half))
    assert type(y) is Sub and y.dtype is torch.bfloat16 and y.requires_grad


def test_a_subclass_is_compared_and_saved_as_a_tensor(tmp_path: Any) -> None:
    torch.testing.assert_close(sub(), torch.arange(1.0, 4.0), check_dtype=True)
    torch.save({"x": torch.arange(3.0).as_subclass(torch.Tensor)}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["x"].tolist() == [0, 1, 2]


def test_functions_are_overridable_or_ignored() -> None:
    ignored = torch.overrides.get_ignored_functions()
    assert {torch.manual_seed, torch.is_tensor, torch.Tensor.as_subclass} <= ignored
    for functions in torch.overrides.get_overridable_functions().values():
        assert ignored.isdisjoint(functions)


def test_objects_of_any_class_take_over_as_an_index_and_as_what_is_written() -> None:
    class Place:
        seen: ClassVar[list[Any]] = []

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            cls.seen.append((func, types))
            return -1

    x: Any = torch.tensor([5])
    assert x[Place()] == x[0, Place()] == -1
    x[Place()] = 1
    x[0] = Place()
    assert x.tolist() == [5]
    names = [func.__name__ for func, types in Place.seen if types == (Place,)]
    assert names == ["__getitem__"] * 2 + ["__setitem__"] * 2


def test_a_lookup_may_empty_the_list_that_it_comes_from() -> None:
    items: list[Any] = []
    others: list[Any] = []  # which come to be where an item was that is gone

    class Other:
        pass

    class Emptying(type):
        def __getattribute__(cls, name: str) -> Any:
            if name == "__torch_function__":
                items.clear()
                others.extend(Other() for _ in range(100))
            return super().__getattribute__(name)

    class Item(metaclass=Emptying):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "taken over"

    for _ in range(20):
        items.append(Item())
        assert torch.cat(items) == "taken over"


def test_modes_are_listed_and_disabled() -> None:
    stack, current = (
        torch.overrides._get_current_function_mode_stack,
        torch.overrides._get_current_function_mode,
    )
    assert stack() == [] and current() is None
    with Counts() as outer, Counts() as inner:
        assert stack() == [outer, inner] and current() is inner
        outer.names.clear()
        inner.names.clear()
        with torch._C.DisableTorchFunction():
            assert type(sub() + 1) is torch.Tensor and stack() == []
        assert outer.names == inner.names == [] and stack() == [outer, inner]

    class Wrong(torch.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="plain method"), Wrong():
        pass
