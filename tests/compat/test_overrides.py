"""What __torch_function__ is told of functions, methods and operators, against PyTorch itself."""

from typing import Any

import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

FUNCTIONS = """torch.add(x, y) torch.exp(x) torch.unbind(x) torch.split(x, 1) torch.cat([x, y])
    torch.stack((y, x)) torch.where(y>1, x, y) torch.relu_(x) F.linear(x, y) F.gelu(x)
    torch.linalg.inv(x) torch.fft.fft(x) torch.special.expit(x) torch.einsum("ij,jk->ik", x, y)
    torch.zeros_like(x) torch.allclose(x, y) torch.reshape(x, (4,))"""
METHODS = """x.add(y) x.add_(y) x.exp() x.exp_() x.unbind() x.split(1) x.chunk(2) x.sum() x.sum(0)
    x.max(0) x.reshape(4) x.view(4) x.permute(1, 0) x.clone() x.detach() x.contiguous() x.squeeze()
    x.where(y>1, y) x.softmax(0) x.matmul(y) x.sort() x.fill_(1) x.zero_() x.copy_(y) x.new_zeros(2)
    x.expand(2, 2) x.repeat(2, 1) x.flatten() x.masked_fill(y>1, 0) x.eq(y) x.equal(y) x.normal_()
    x.is_conj()"""
OPERATORS = """x+y y+x x+1 1+x x-y 1-x x*y 2*x x/y x//y 1//x x%y 2%x x@y y@x -x +x abs(x) ~b b&b b|b
    b^b i<<1 i>>1 x==y x!=y x<y x<=y x>y x>=y 1<x x[0] x[:,1]"""
ATTRIBUTES = """x.shape x.dtype x.device x.requires_grad x.grad x.grad_fn x.is_leaf x.ndim x.T x.mT
    x.H x.real x.data x.layout x.is_cuda x.is_sparse x.itemsize x.nbytes x.output_nr
    x.retains_grad x.requires_grad=False x.data=y x.grad=y"""
QUESTIONS = """x.size() x.size(0) x.dim() x.numel() x.stride() x.storage_offset() x.is_contiguous()
    x.element_size() x.data_ptr() x.is_complex() x.is_floating_point() x.tolist() x.numpy() x.type()
    x.requires_grad_() x.to(torch.float64) x.to(y) x.double() x.cpu() x.untyped_storage()
    x.new_tensor(2) x.is_shared() x.as_subclass(torch.Tensor) x.dim_order() x.unique() s.item()
    float(s) int(s) bool(s) len(x) (1.0 in x) f"{x}" list(range(4))[i[0]]
    y.to(x) repr(x) str(x) x.__array__() x.__dlpack__() x.__dlpack_device__() reversed(x)
    x.__reduce_ex__(2)"""
STATEMENTS = """x+=y x-=y x*=y x/=y x//=y x%=y x[0]=1 b&=b b|=b b^=b i<<=1 i>>=1"""


def cases(text: str) -> list[str]:
    """Calls that begin in one word and end in another, as words again."""
    found: list[str] = []
    for word in text.split():
        if found and found[-1].count("(") > found[-1].count(")"):
            found[-1] += " " + word
        else:
            found.append(word)
    return found


def told(library: Any, statement: str) -> list[str]:
    """Where in a library the functions are that a subclass is told of in a statement."""
    names: list[str] = []
    attributes = {text[2:].partition("=")[0] for text in cases(ATTRIBUTES)}

    class Sub(library.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            name = func.__name__
            for key in attributes if name in ("__get__", "__set__") else ():
                if getattr(getattr(library.Tensor, key), name) == func:
                    names.append(f"{key}.{name}")
            homes = {"Tensor": library.Tensor, "torch": library, "F": library.nn.functional}
            homes |= {key: getattr(library, key) for key in ("linalg", "fft", "special")}
            short = name.removeprefix("linalg_").removeprefix("fft_").removeprefix("special_")
            for home, module in homes.items():
                if func in (getattr(module, name, None), getattr(module, short, None)):
                    names.append(f"{home}.{short}")
                    break
            else:
                names.append(f"elsewhere: {name}")
            with library._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    x = library.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Sub)
    i, b = library.tensor([1, 2]).as_subclass(Sub), library.tensor([True]).as_subclass(Sub)
    s = library.tensor(1.0).as_subclass(Sub)
    names.clear()
    scope = {"torch": library, "F": library.nn.functional, "x": x, "i": i, "b": b, "s": s}
    exec(statement, scope | {"y": library.ones(2, 2)})
    return names


ALL = cases(" ".join((FUNCTIONS, METHODS, OPERATORS, STATEMENTS, ATTRIBUTES, QUESTIONS)))


@pytest.mark.parametrize("statement", ALL)
def test_subclasses_are_told_what_pytorch_tells(statement: str) -> None:
    assert told(torch, statement) == told(pytorch, statement)


def test_operators_and_functions_are_methods_and_functions() -> None:
    for library in torch, pytorch:
        assert library.add != library.Tensor.add and library.add is library.add
        handled = {library.unbind: "function", library.Tensor.unbind: "method"}
        assert [handled[library.unbind], handled[library.Tensor.unbind]] == ["function", "method"]
