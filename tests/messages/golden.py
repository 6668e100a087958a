"""Mistakes that people make with tensors, one expression each; golden.txt holds what they say.

python tests/messages/golden.py writes golden.txt anew: read the difference before keeping it.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden.txt")
SETUP = """
x = torch.arange(6.0).view(2, 3)
v = torch.arange(3.0)
i = torch.tensor([0, 2])
b = torch.tensor([True, False, True])
z = torch.ones(2, dtype=torch.complex64)
"""
MISTAKES = """
# shapes
x + torch.ones(2)
x @ x
torch.mm(x, v)
torch.bmm(x, x)
torch.dot(v, torch.ones(4))
x.view(4)
x.reshape(-1, 4)
x.view(-1, -1)
x.t().view(6)
x.expand(2, 4)
torch.cat([x, torch.ones(2, 2)])
torch.cat([])
torch.stack([x, v])
x.permute(0, 0)
x.permute(0)
x.squeeze(5)
x.unsqueeze(4)
x.split([1, 2])
x.split(-1)
x.chunk(0)
torch.where(b, x, torch.ones(4))
torch.einsum("ij,jk->ik", x, x)
torch.einsum("ij->ijj", x)
torch.tensordot(x, x, 1)
torch.cross(x, torch.ones(2, 2))
torch.kron(x, "a")
torch.diag(torch.ones(2, 2, 2))
x.repeat(2)
torch.broadcast_tensors(x, torch.ones(4))
torch.full((2, -1), 0.0)
torch.linspace(0, 1, -1)
torch.arange(0, 1, 0)
torch.eye(-1)
# dims and places
x.sum(2)
x.sum((0, 0))
x.size(2)
x.size("0")
x.argmax(3)
x[2]
x[:, 3]
x[0, 3]
x[None, 0, 3]
x[0, 0, 0]
x["a"]
x[1.0]
x[torch.tensor([2])]
x[torch.tensor([0.0])]
x[b]
x.index_select(0, torch.tensor([2]))
x.gather(0, torch.tensor([[2]]))
x.gather(0, i)
torch.zeros(3).scatter_(0, torch.tensor([3]), 1.0)
x.take(torch.tensor([6]))
x.narrow(0, 1, 2)
x.select(0, 2)
x.kthvalue(4)
x.topk(4)
torch.bincount(torch.tensor([-1]))
torch.multinomial(torch.tensor([0.0, 0.0]), 1)
# dtypes
torch.softmax(i, 0)
torch.mean(i)
torch.var(i)
torch.sqrt(x, out=torch.zeros(2, 3, dtype=torch.int64))
x.bitwise_and(x)
i.add_(1.5)
b - b
-b
z < z
torch.maximum(z, z)
torch.sort(z)
torch.floor(z)
torch.mm(x, torch.ones(3, 1, dtype=torch.float64))
torch.tensor(["a"])
torch.tensor([[1, 2], [3]])
torch.tensor(1, dtype="int")
torch.finfo(torch.int64)
torch.iinfo(torch.float32)
torch.tensor([1, 2], dtype=torch.float32, requires_grad=1, foo=2)
i.requires_grad_()
# numbers out of tensors
bool(x)
x.item()
float(v)
int(torch.tensor([]))
torch.tensor([]).max()
torch.tensor([]).argmax()
# linear algebra
torch.linalg.inv(x)
torch.linalg.inv(torch.zeros(2, 2))
torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))
torch.linalg.cholesky(-torch.eye(2))
torch.linalg.eigh(x)
torch.linalg.solve(torch.eye(2), torch.ones(3))
torch.linalg.norm(x, ord="abc")
torch.linalg.matrix_power(x, 2)
torch.det(i)
# transforms, windows, numbers
torch.fft.fft(x, n=0)
torch.fft.fft(x, dim=3)
torch.fft.fft(x, norm="abc")
torch.stft(v, 8)
torch.hann_window(-1)
torch.quantile(v, 2.0)
torch.histc(v, bins=0)
torch.cdist(x, v)
torch.normal(0.0, -1.0, (2,))
torch.bernoulli(torch.tensor(2.0))
torch.randint(3, 3, (2,))
torch.empty(2).uniform_(1, 0)
# arguments
torch.add(x)
torch.add(x, 1, 2, 3)
torch.sum(x, dimm=0)
torch.zeros("a")
torch.zeros(2, "a")
torch.zeros(2, dtype="float32")
torch.distributions.Normal(0.0, 1.0).sample(3)
torch.zeros((2, 1.5))
torch.zeros(2, device="gpu")
x.to("abc")
x.to("float32")
torch.relu()
torch.relu(x, x)
torch.nn.functional.reluu
x.view("a")
torch.cat([x, 1])
torch.nn.Linear("a", 2)
torch.clamp(x)
torch.relu(1.0)
# layers
F.linear(x, torch.ones(4, 2))
F.conv2d(x, torch.ones(1, 1, 2, 2))
F.conv2d(torch.ones(1, 3, 4, 4), torch.ones(2, 1, 2, 2))
F.conv1d(torch.ones(1, 2, 3), torch.ones(1, 2, 5))
F.conv1d(torch.ones(1, 2, 3), torch.ones(1, 2, 2), stride=0)
F.conv_transpose2d(torch.ones(1, 2, 3, 3), torch.ones(3, 1, 2, 2))
F.max_pool2d(torch.ones(1, 1, 2, 2), 3)
F.max_pool2d(torch.ones(1, 1, 4, 4), 2, padding=2)
F.avg_pool2d(x, 2)
F.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4), 1.5)
F.batch_norm(torch.ones(1, 3), None, None, training=True)
F.layer_norm(x, (4,))
F.group_norm(torch.ones(2, 3, 4), 2)
F.embedding(torch.tensor([3]), torch.ones(3, 2))
F.embedding(v, torch.ones(3, 2))
F.one_hot(i, 2)
F.dropout(x, 1.5)
F.glu(v)
F.softmax(x, 2)
F.pixel_shuffle(torch.ones(1, 3, 2, 2), 2)
# losses
F.cross_entropy(x, torch.tensor([0, 3]))
F.cross_entropy(x, torch.tensor([0, 1, 2]))
F.cross_entropy(x, torch.tensor([0, 1]), reduction="avg")
F.nll_loss(x, i.float())
F.binary_cross_entropy(x, x)
F.mse_loss(x, torch.ones(2, 2))
F.kl_div(x, x, reduction="no")
F.huber_loss(x, x, delta=-1.0)
# training
torch.optim.SGD([], lr=0.1)
torch.optim.SGD([v.requires_grad_()], lr="1e-3")
torch.optim.SGD([v], lr=0.1, momentum="0.9")
torch.optim.SGD([{"param": [v]}], lr=0.1)
torch.optim.SGD([v], lr=0.1).load_state_dict({"epoch": 3})
torch.optim.SGD([v], lr=0.1).load_state_dict("file.pt")
torch.optim.SGD({"weight": v}, lr=0.1)
torch.optim.Adam([v], betas=0.9)
torch.nn.ModuleList([torch.nn.ReLU()])(x)
torch.nn.utils.rnn.pad_sequence([torch.ones(3, 2), torch.ones(2, 3)])
torch.nn.utils.rnn.pad_packed_sequence(x)
torch.nn.Linear(3, 2)(x.double())
torch.nn.Linear(3, 2)(x.numpy())
torch.nn.Linear(3, 2)([1.0, 2.0, 3.0])
torch.nn.Linear(3, 2)(None)
# order, sums, indices
torch.searchsorted(torch.ones(2, 2), v)
torch.bucketize(v, x)
torch.cumsum(x, 2)
torch.logcumsumexp(i, 0)
torch.diff(x, n=-1)
torch.trapezoid(v, torch.ones(2))
torch.cov(torch.ones(2, 2, 2))
torch.corrcoef(torch.ones(2, 2, 2))
torch.nanquantile(x, torch.tensor([[0.5]]))
torch.histogram(v, -1)
torch.segment_reduce(v, "sum", lengths=torch.tensor([5]))
torch.masked_select(x, v)
x.masked_fill(b, 1j)
x.index_add(0, i, x)
x.index_copy(0, torch.tensor([0]), x)
x.index_put((i, i), torch.tensor([1, 2]))
x.put_(i, v)
torch.unravel_index(i, (-1, 2))
x.as_strided((3, 3), (3, 1))
x.unfold(1, 4, 1)
torch.polygamma(-1, v)
torch.special.zeta(z, 2)
torch.complex(x, i)
torch.view_as_complex(v)
torch.linalg.norm(x, ord=1j)
torch.pdist(v)
torch.renorm(x, 2, 0, -1.0)
torch.add(x, 2**70)
# memory and history
torch.add(x, x, out=torch.empty(2, 3, device="meta"))
torch.add(x, x, out=torch.ones(1).expand(2, 3))
x.add_(torch.ones(2, 2, 3))
x[:1].add_(x)
x.expand(4, 2, 3).add_(1)
v.requires_grad_().add_(1)
v.requires_grad_().numpy()
x.backward()
torch.sparse_coo_tensor(torch.tensor([[3]]), torch.ones(1), (2,))
torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(2), (2,))
"""


def report() -> str:
    """Each mistake with the class and the text of its error."""
    import rushlight as torch

    lines = []
    for line in MISTAKES.strip().splitlines():
        if line.startswith("#"):
            lines.append(f"\n{line}\n")
            continue
        names = {"torch": torch, "F": torch.nn.functional}
        exec(SETUP, names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                eval(line, names)
                said = "nothing"
            except Exception as error:
                said = f"{type(error).__name__}: {_as_newer_python(str(error))}"
        lines.append(f"{line}\n    " + said.replace("\n", "\n    "))
    return "\n".join(lines).lstrip() + "\n"


def _as_newer_python(text: str) -> str:
    """What Python itself says of an unknown keyword has had other words since 3.13."""
    return re.sub(
        r"('\w+') is an invalid keyword argument for (\w+\(\))",
        r"\2 got an unexpected keyword argument \1",
        text,
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    GOLDEN.write_text(report())
