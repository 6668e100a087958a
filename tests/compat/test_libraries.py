"""Libraries written for PyTorch compute the same on Rushlight, unchanged (rushlight/as_torch.py).

Each program runs twice, in a process of its own: with PyTorch, and by `-m rushlight.as_torch`. It
sets weights by NumPy, because the two draw different random numbers, and prints numbers.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
FILL = """
import json
import numpy as np
import torch

def filled(module):
    numbers = np.random.RandomState(1)
    with torch.no_grad():
        for name, value in sorted(module.state_dict().items()):
            if value.dtype.is_floating_point and value.dim():
                value.copy_(torch.from_numpy(0.05 * numbers.randn(*value.shape)))
    return module

def slopes(module):
    return [p.grad.abs().sum().item() for _, p in sorted(module.named_parameters())
            if p.grad is not None]
"""
PROGRAMS = {
    "einops": """
from einops import rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange

x = torch.arange(96.0).reshape(2, 3, 4, 4).requires_grad_()
patches = rearrange(x, "b c (h i) (w j) -> b (h w) (c i j)", i=2, j=2)
net = filled(torch.nn.Sequential(
    EinMix("b t c -> b t d", weight_shape="c d", c=12, d=5), Rearrange("b t d -> b (t d)")))
y = net(patches) + reduce(x, "b c h w -> b 1", "mean") + repeat(x[:, 0, 0, 0], "b -> b k", k=20)
y.square().sum().backward()
print(json.dumps([y.sum().item(), x.grad.norm().item(), *slopes(net)]))
""",
    "torchdiffeq": """
from torchdiffeq import odeint, odeint_adjoint

class Spiral(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    def forward(self, t, y):
        return self.net(y**3)

numbers = []
for solve in (odeint, odeint_adjoint):
    for method in ("dopri5", "rk4", "implicit_adams"):
        spiral = filled(Spiral())
        path = solve(spiral, torch.tensor([[2.0, 0.0]]), torch.linspace(0, 5, 9), method=method)
        path.abs().mean().backward()
        numbers += [path.sum().item(), *slopes(spiral)]
print(json.dumps(numbers))
""",
    "gpytorch": """
import gpytorch

class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

x = torch.linspace(0, 1, 30)
y = torch.sin(6 * x) + 0.1 * torch.cos(40 * x)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Process(x, y, likelihood)
goal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
adam = torch.optim.Adam(model.parameters(), lr=0.1)
numbers = []
for _ in range(20):
    adam.zero_grad()
    loss = -goal(model(x), y)
    loss.backward()
    adam.step()
    numbers.append(loss.item())
model.eval()
likelihood.eval()
with torch.no_grad():
    prediction = likelihood(model(torch.linspace(0, 1.2, 7)))
print(json.dumps(numbers + prediction.mean.tolist() + prediction.variance.tolist()))
""",
    "transformers": """
import transformers

sizes = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=64)
ids = torch.from_numpy(np.random.RandomState(0).randint(3, 99, (2, 12)))
numbers = []
for name, config in {
    "GPT2LMHeadModel": transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4),
    "LlamaForCausalLM": transformers.LlamaConfig(**sizes, num_key_value_heads=2),
    "BertForMaskedLM": transformers.BertConfig(**sizes),
    "ViTForImageClassification": transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        image_size=32, patch_size=8),
}.items():
    model = filled(getattr(transformers, name)(config)).eval()
    if "Image" in name:
        loss = model(torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)).logits.sum()
    else:
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    numbers += [loss.item(), *slopes(model)]
    if "LM" in name and "Masked" not in name:
        numbers += model.generate(
            ids[:1, :4], max_new_tokens=6, do_sample=False, pad_token_id=0)[0].tolist()
print(json.dumps(numbers))
""",
    "timm": """
import timm

numbers = []
for name in ("resnet18", "vit_tiny_patch16_224", "convnext_atto", "mobilenetv3_small_100"):
    model = filled(timm.create_model(name, num_classes=7)).eval()
    out = model(torch.linspace(-1, 1, 3 * 224 * 224).view(1, 3, 224, 224))
    out.square().sum().backward()
    numbers += [*out[0].tolist(), *slopes(model)[:10]]
print(json.dumps(numbers))
""",
}


# The newest version that runs; later ones need parts of PyTorch that are not here.
NEWEST = {"transformers": "4.57"}


def numbers_of(program: str, folder: Path, *runner: str) -> list[float]:
    path = folder / "program.py"
    path.write_text(FILL + program)
    done = subprocess.run(
        [sys.executable, *runner, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("library", PROGRAMS)
def test_a_library_computes_the_same(library: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    version = importlib.metadata.version(library)
    if library in NEWEST and not version.startswith(NEWEST[library]):
        pytest.skip(f"{library} {version} is not {NEWEST[library]}")
    expected = numbers_of(PROGRAMS[library], tmp_path)
    actual = numbers_of(PROGRAMS[library], tmp_path, "-m", "rushlight.as_torch")
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-5)
