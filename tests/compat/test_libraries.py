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
    "lightning": """
import logging
import tempfile

import lightning.pytorch as pl
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

class Net(pl.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
    def training_step(self, batch, i):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        return loss
    def validation_step(self, batch, i):
        self.log("val", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))
    def configure_optimizers(self):
        adam = torch.optim.AdamW(self.parameters(), 1e-2)
        schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 0.02, total_steps=60)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

class Waves(pl.LightningDataModule):
    def setup(self, stage):
        x = torch.from_numpy(np.random.RandomState(0).randn(256, 4).astype("float32"))
        self.data = TensorDataset(x, x.sum(1, keepdim=True).sin())
    def train_dataloader(self):
        return DataLoader(self.data, batch_size=32)
    def val_dataloader(self):
        return DataLoader(self.data, batch_size=64)

numbers = []
with tempfile.TemporaryDirectory() as folder:
    options = dict(accelerator="cpu", logger=False, enable_progress_bar=False,
                   enable_model_summary=False, default_root_dir=folder, gradient_clip_val=0.5)
    best = ModelCheckpoint(folder, monitor="val", save_last=True)
    first = pl.Trainer(max_epochs=3, callbacks=[best, EarlyStopping("val")], **options)
    first.fit(filled(Net()), datamodule=Waves())
    second = pl.Trainer(
        max_epochs=5, accumulate_grad_batches=2, enable_checkpointing=False, **options)
    second.fit(Net(), datamodule=Waves(), ckpt_path=best.last_model_path)
    for trainer in (first, second):
        numbers += [trainer.callback_metrics[name].item() for name in ("loss", "val")]
    again = Net.load_from_checkpoint(best.best_model_path)
    numbers += [second.global_step, best.best_model_score.item(), *slopes(again)]
print(json.dumps(numbers))
""",
    "peft": """
import tempfile

import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

class Ordered(Trainer):
    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(self.train_dataset)
    def log(self, *_):
        pass

ids = torch.from_numpy(np.random.RandomState(0).randint(3, 50, (64, 16)))
data = [{"input_ids": row, "labels": row} for row in ids]

def base():
    return filled(GPT2LMHeadModel(GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)))

with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, per_device_train_batch_size=8, max_steps=12, learning_rate=1e-2,
        lr_scheduler_type="cosine", warmup_steps=2, report_to=[], use_cpu=True, disable_tqdm=True,
        save_strategy="no")
    whole = Ordered(model=base(), args=arguments, train_dataset=data, eval_dataset=data[:16])
    numbers = [whole.train().training_loss, whole.evaluate()["eval_loss"]]
    lora = get_peft_model(base(), LoraConfig(
        r=4, target_modules=["c_attn", "c_fc"], task_type="CAUSAL_LM", fan_in_fan_out=True))
    draw = np.random.RandomState(2)
    with torch.no_grad():
        for name, value in sorted(lora.named_parameters()):
            if "lora" in name:
                value.copy_(torch.from_numpy(0.1 * draw.randn(*value.shape)))
    numbers.append(Ordered(model=lora, args=arguments, train_dataset=data).train().training_loss)
    lora.save_pretrained(folder)
    again = PeftModel.from_pretrained(base(), folder).eval()
    for model in (again, again.merge_and_unload()):
        numbers.append(model(input_ids=ids[:4], labels=ids[:4]).loss.item())
print(json.dumps(numbers))
""",
    "diffusers": """
from diffusers import AutoencoderKL, DDIMScheduler, DDPMScheduler, UNet2DModel

draw = np.random.RandomState(0)
def noise(*shape):
    return torch.from_numpy(draw.randn(*shape).astype("float32"))

net = filled(UNet2DModel(
    sample_size=16, in_channels=1, out_channels=1, layers_per_block=1, norm_num_groups=8,
    block_out_channels=(32, 64), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D")))
adam, steps, numbers = torch.optim.AdamW(net.parameters(), 1e-3), DDPMScheduler(100), []
for _ in range(4):
    x, e = noise(4, 1, 16, 16), noise(4, 1, 16, 16)
    t = torch.from_numpy(draw.randint(0, 100, 4))
    loss = torch.nn.functional.mse_loss(net(steps.add_noise(x, e, t), t).sample, e)
    loss.backward()
    adam.step()
    adam.zero_grad()
    numbers.append(loss.item())
steps, z = DDIMScheduler(100), noise(2, 1, 16, 16)
steps.set_timesteps(5)
with torch.no_grad():
    for t in steps.timesteps:
        z = steps.step(net(z, t).sample, t, z).prev_sample
coder = filled(AutoencoderKL(
    block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=4, sample_size=32))
x = noise(2, 3, 32, 32)
latent = coder.encode(x).latent_dist
loss = (coder.decode(latent.mode()).sample - x).square().mean() + 1e-3 * latent.kl().mean()
loss.backward()
print(json.dumps([*numbers, z.abs().mean().item(), loss.item(), *slopes(coder)[:20]]))
""",
    "torchmetrics": """
from torchmetrics import classification, detection, image, regression

draw = np.random.RandomState(0)
scores = torch.from_numpy(draw.rand(64, 5).astype("float32")).softmax(1)
classes = torch.from_numpy(draw.randint(0, 5, 64))
numbers = []
for name in ("Accuracy", "F1Score", "AUROC", "AveragePrecision", "CalibrationError", "CohenKappa",
             "ConfusionMatrix", "JaccardIndex", "MatthewsCorrCoef", "StatScores"):
    metric = getattr(classification, "Multiclass" + name)(num_classes=5)
    for _ in range(2):
        metric.update(scores, classes)
    numbers += metric.compute().double().flatten().tolist()
for name in ("MeanSquaredError", "PearsonCorrCoef", "SpearmanCorrCoef", "R2Score"):
    numbers.append(getattr(regression, name)()(scores[:, 0], scores[:, 1]).item())
a, b = torch.from_numpy(draw.rand(2, 2, 3, 32, 32).astype("float32"))
numbers.append(image.StructuralSimilarityIndexMeasure(data_range=1.0)(a, b).item())
def boxes(count):
    corners = np.sort(draw.rand(count, 2, 2), 1).reshape(count, 4)
    return torch.from_numpy(100 * corners.astype("float32"))
truth = [{"boxes": boxes(5), "labels": torch.from_numpy(draw.randint(0, 2, 5))} for _ in range(4)]
found = [{"boxes": torch.cat([t["boxes"] + 2, boxes(3)]),
          "scores": torch.from_numpy(draw.rand(8).astype("float32")),
          "labels": torch.cat([t["labels"], torch.tensor([0, 1, 0])])} for t in truth]
metric = detection.MeanAveragePrecision()
metric.update(found, truth)
numbers += [value.item() for _, value in sorted(metric.compute().items()) if value.numel() == 1]
print(json.dumps(numbers))
""",
    "torch_geometric": """
import torch_geometric.nn as gnn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

draw = np.random.RandomState(0)
def graph(n):
    return Data(x=torch.from_numpy(draw.randn(n, 8).astype("float32")), y=torch.tensor([n % 2]),
                edge_index=torch.from_numpy(draw.randint(0, n, (2, 3 * n))))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            [gnn.GCNConv(8, 16), gnn.GATConv(16, 8, heads=2), gnn.GINConv(torch.nn.Linear(16, 16))])
        self.pool, self.out = gnn.TopKPooling(16, 0.6), torch.nn.Linear(32, 2)
    def forward(self, data):
        x = data.x
        for conv in self.convs:
            x = conv(x, data.edge_index).relu()
        x, _, _, batch, _, _ = self.pool(x, data.edge_index, batch=data.batch)
        return self.out(torch.cat(
            [gnn.global_mean_pool(x, batch), gnn.global_max_pool(x, batch)], 1))

net, numbers = filled(Net()), []
graphs = [graph(n) for n in (5, 7, 9, 6)]
adam = torch.optim.Adam(net.parameters(), 0.01)
for workers in (0, 1):
    for data in DataLoader(graphs, batch_size=2, num_workers=workers):
        loss = torch.nn.functional.cross_entropy(net(data), data.y)
        loss.backward()
        adam.step()
        adam.zero_grad()
        numbers.append(loss.item())
print(json.dumps(numbers))
""",
    "botorch": """
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.set_default_dtype(torch.float64)
goal = lambda x: -(6 * x - 2).square() * torch.sin(12 * x - 4)
x, bounds, numbers = torch.tensor([[0.05], [0.3], [0.55], [0.95]]), torch.tensor([[0.0], [1.0]]), []
for _ in range(3):
    model = SingleTaskGP(x, goal(x))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    best, gain = optimize_acqf(
        LogExpectedImprovement(model, best_f=goal(x).max()), bounds=bounds, q=1, num_restarts=15,
        raw_samples=15, batch_initial_conditions=torch.linspace(0.01, 0.99, 15)[:, None, None])
    x = torch.cat([x, best])
    numbers += [best.item(), gain.item()]
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
