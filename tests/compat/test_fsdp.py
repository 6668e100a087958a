"""The same programs with sharded modules on two ranks, here and over PyTorch's gloo."""

from __future__ import annotations

from pathlib import Path

import pytest
from compat.ranks import check_agreement, results_of

pytest.importorskip("torch")

PROGRAM = r"""
import functools, importlib, json, os, sys, warnings
framework, path, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch = importlib.import_module(framework)
dist = importlib.import_module(framework + ".distributed")
T = importlib.import_module(framework + ".distributed.tensor")
fsdp = importlib.import_module(framework + ".distributed.fsdp")
wrap = importlib.import_module(framework + ".distributed.fsdp.wrap")
dcp = importlib.import_module(framework + ".distributed.checkpoint")
states = importlib.import_module(framework + ".distributed.checkpoint.state_dict")
nn, F, FSDP = torch.nn, torch.nn.functional, fsdp.FullyShardedDataParallel
warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo", f"file://{path}-{framework}", rank=rank, world_size=2)
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
results = {}

def numbers(value):
    if isinstance(value, T.DTensor):
        value = value.full_tensor()
    return [list(value.shape), value.detach().float().flatten().tolist()]

def tree(value):
    if isinstance(value, torch.Tensor):
        return numbers(value)
    if isinstance(value, dict):
        return {str(k): tree(v) for k, v in value.items()}
    return [tree(v) for v in value] if isinstance(value, (list, tuple)) else value

def grid(*shape):
    count = 1
    for n in shape:
        count *= n
    return torch.sin(torch.arange(float(count)) * 1.7).view(shape)

def error(name, call):
    try:
        call()
        results[name] = "nothing"
    except BaseException as e:
        kinds = (dcp.CheckpointException, NotImplementedError, TypeError, ValueError,
                 AssertionError, RuntimeError)
        results[name] = next(k.__name__ for k in kinds if isinstance(e, k))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(6), nn.Linear(6, 5), nn.Linear(5, 6)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(6, 7)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(grid(*p.shape) * 0.5)
    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

def sharded(net, **options):
    for block in net.blocks:
        fsdp.fully_shard(block, mesh=mesh, **options)
    return fsdp.fully_shard(net, mesh=mesh, **options)

def wrapped(net, **options):
    policy = wrap.ModuleWrapPolicy({Block})
    return FSDP(net, auto_wrap_policy=policy, device_id=torch.device("cpu"),
                use_orig_params=True, **options)

def loss_of(model, step):
    ids = ((torch.arange(12) * 5 + step + 3 * rank) % 7).view(2, 6)
    return F.cross_entropy(model(ids).float().flatten(0, 1), ids.flatten())

def train(name, model, clip=None, grads=True):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        results[f"{name} {step}"] = loss.item()
        if grads:
            for key, p in model.named_parameters():
                results[f"{name} {step} {key} gradient"] = numbers(p.grad)
        if clip is not None:
            results[f"{name} {step} norm"] = numbers(clip())
        optimizer.step()
    return optimizer

low = torch.bfloat16
for name, options in {
    "plain": {}, "kept": {"reshard_after_forward": False},
    "low": {"mp_policy": fsdp.MixedPrecisionPolicy(param_dtype=low, reduce_dtype=torch.float32)},
    "dim 1": {"shard_placement_fn": lambda p: T.Shard(1) if p.dim() == 2 and not p.shape[1] % 2
              else None},
}.items():
    model = sharded(Net(), **options)
    results[name + " class"] = [type(m).__name__ for m in model.modules()]
    for key, p in model.named_parameters():
        results[f"{name} {key}"] = [str(p.placements), list(p.to_local().shape), list(p.shape)]
    optimizer = train(name, model, lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.1),
                      grads=name != "low")
    results[name + " parameters"] = tree(dict(model.state_dict()))

model = sharded(Net())
model.set_requires_gradient_sync(False)
loss_of(model, 0).backward()
results["not synced"] = [p.grad is None for p in model.parameters()]
model.set_requires_gradient_sync(True)
loss_of(model, 1).backward()
results["accumulated"] = [numbers(p.grad) for p in model.parameters()]
model.unshard()
results["unsharded"] = [list(p.shape) for p in model.parameters()]
model.reshard()
optimizer = train("again", model)
for name, options in {
    "cut": {}, "full": {"full_state_dict": True},
    "flat": {"full_state_dict": True, "flatten_optimizer_state_dict": True},
    "first": {"full_state_dict": True, "cpu_offload": True},
}.items():
    options = states.StateDictOptions(**options)
    found = states.get_state_dict(model, optimizer, options=options)
    results["states " + name] = tree(found[0])
    # Options that only PyTorch's optimizer has are not compared.
    optim = found[1]
    results["optimizer " + name] = tree(optim.get("state", {})) if name != "flat" else tree(
        {k: v for k, v in optim.items() if k.startswith("state.") or k.endswith((".lr", ".eps"))})
    if name != "flat" and optim:
        results["groups " + name] = [[sorted(g["params"]), g["lr"], list(g["betas"])]
                                     for g in optim["param_groups"]]
full = states.StateDictOptions(full_state_dict=True)
saved = states.get_state_dict(model, optimizer, options=full)
other = sharded(Net())
second = torch.optim.AdamW(other.parameters(), lr=0.5, foreach=False)
keys = states.set_state_dict(other, second, model_state_dict=saved[0],
                             optim_state_dict=saved[1], options=full)
results["keys"] = [list(keys.missing_keys), list(keys.unexpected_keys)]
results["continued"] = [loss_of(other, 0).item(), second.param_groups[0]["lr"]]

S = fsdp.ShardingStrategy
for name, options in {
    "FULL_SHARD": {}, "SHARD_GRAD_OP": {"sharding_strategy": S.SHARD_GRAD_OP},
    "NO_SHARD": {"sharding_strategy": S.NO_SHARD},
    "precision": {"mixed_precision": fsdp.MixedPrecision(low, torch.float32, low)},
}.items():
    model = wrapped(Net(), **options)
    results[name + " wrapped"] = [k.replace("_fsdp_wrapped_module", "")
                                  for k, m in model.named_modules() if isinstance(m, FSDP)]
    optimizer = train(name, model, lambda: model.clip_grad_norm_(0.1), grads=False)
    results[name + " parameters"] = tree(dict(model.state_dict()))
    with FSDP.summon_full_params(model):
        results[name + " summoned"] = {k: numbers(p) for k, p in model.named_parameters()}
    if name == "NO_SHARD":
        continue
    found = FSDP.optim_state_dict(model, optimizer)
    # Without the values: on the CPU PyTorch's exp_avg is what exp_avg_sq should be.
    results[name + " optimizer"] = {k: {n: list(x.shape) for n, x in v.items()}
                                    for k, v in found["state"].items()}
    results[name + " groups"] = [sorted(g["params"]) for g in found["param_groups"]]
    other = wrapped(Net(), **options)
    other.load_state_dict(model.state_dict())
    second = torch.optim.AdamW(other.parameters(), lr=0.5, foreach=False)
    second.load_state_dict(FSDP.optim_state_dict_to_load(other, second, found))
    results[name + " loaded"] = [loss_of(other, 0).item(), second.param_groups[0]["lr"]]
model = wrapped(Net())
with model.no_sync():
    loss_of(model, 0).backward()
loss_of(model, 1).backward()
results["no_sync"] = numbers(model.clip_grad_norm_(1.0))
K = fsdp.StateDictType
with FSDP.state_dict_type(model, K.SHARDED_STATE_DICT):
    results["sharded keys"] = list(model.state_dict())
results["kind"] = FSDP.get_state_dict_type(model).state_dict_type.name

def names_wrapped(policy, net=None):
    net = FSDP(net or Net(), auto_wrap_policy=policy, device_id=torch.device("cpu"))
    return [k.replace("_fsdp_wrapped_module", "") for k, m in net.named_modules()
            if isinstance(m, FSDP)]
P = functools.partial
results["policies"] = [
    names_wrapped(None),
    names_wrapped(wrap.always_wrap_policy, nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))),
    names_wrapped(P(wrap.size_based_auto_wrap_policy, min_num_params=70)),
    names_wrapped(P(wrap.size_based_auto_wrap_policy, min_num_params=40)),
    names_wrapped(P(wrap.size_based_auto_wrap_policy, min_num_params=40,
                    exclude_wrap_modules={nn.Embedding})),
    names_wrapped(P(wrap.transformer_auto_wrap_policy, transformer_layer_cls={Block})),
    names_wrapped(P(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Linear))),
    names_wrapped(wrap.CustomPolicy(lambda m: isinstance(m, nn.Linear))),
    names_wrapped(P(wrap._or_policy, policies=[wrap.ModuleWrapPolicy({nn.Embedding}),
        P(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, Block))])),
]
with wrap.enable_wrap(wrapper_cls=FSDP, device_id=torch.device("cpu")):
    results["wrap"] = isinstance(wrap.wrap(nn.Linear(2, 2)), FSDP)
results["no wrap"] = isinstance(wrap.wrap(nn.Linear(2, 2)), FSDP)

error("containers", lambda: fsdp.fully_shard(nn.ModuleList([nn.Linear(2, 2)]), mesh=mesh))
error("scalars", lambda: fsdp.fully_shard(nn.ParameterList([torch.ones(())]), mesh=mesh))
error("configuration", lambda: FSDP.set_state_dict_type(model, K.SHARDED_STATE_DICT,
                                                        fsdp.FullStateDictConfig()))
error("broadcast", lambda: states.set_model_state_dict(
    model, {}, options=states.StateDictOptions(broadcast_from_rank0=True)))
error("method", lambda: fsdp.register_fsdp_forward_method(sharded(Net()), "speak"))
error("both", lambda: FSDP(Net(), process_group=dist.group.WORLD, device_mesh=mesh,
                           device_id=torch.device("cpu")))

# States of optimizers by name and by number.
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=0.1)
sum(p.sum() for p in net.parameters()).backward()
adam.step()
kinds = importlib.import_module(framework + ".distributed.fsdp.fully_sharded_data_parallel")
kinds = kinds.OptimStateKeyType
for name, given in {"optim": {"optim": adam}, "input": {"optim_input": list(net.parameters())},
                    "nothing": {}}.items():
    named = FSDP.rekey_optim_state_dict(adam.state_dict(), kinds.PARAM_NAME, net, **given)
    numbered = FSDP.rekey_optim_state_dict(named, kinds.PARAM_ID, net, **given)
    results["rekeyed by " + name] = [tree(named["state"]), tree(numbered["state"]), sorted(named),
                                     [[g["params"] for g in s["param_groups"]]
                                      for s in (named, numbered)]]
error("rekey both", lambda: FSDP.rekey_optim_state_dict(
    {"state": {0: 1, "a": 2}, "param_groups": []}, kinds.PARAM_ID, net))

# A checkpoint of PyTorch's, which both read.
state = {"model": sharded(Net()).state_dict(), "rest": {"step": 3, "betas": (0.9, 0.99)},
         "list": [torch.ones(2), {"x": torch.zeros(3, dtype=torch.int64)}],
         "pair": (torch.ones(2), 2)}
if framework == "torch":
    trained = sharded(Net())
    train("saved", trained)
    state["model"] = trained.state_dict()
    dcp.save(state, checkpoint_id=path)
state = {"model": sharded(Net()).state_dict(), "rest": {"step": 0, "betas": None},
         "list": [torch.zeros(2), {"x": torch.ones(3, dtype=torch.int64)}],
         "pair": (torch.zeros(2), 0)}
dcp.load(state, checkpoint_id=path)
results["loaded"] = tree(state)
if dist.get_rank() == 0:  # all of it as one file, nested as it was saved
    file = path + f"-{framework}.pt"
    importlib.import_module(dcp.__name__ + ".format_utils").dcp_to_torch_save(path, file)
    results["one file"] = tree(torch.load(file))
error("missing key", lambda: dcp.load({"nothing": torch.ones(2)}, checkpoint_id=path))
if framework == "torch":
    results = {k: v for k, v in results.items() if not k.startswith("saved")}
dist.destroy_process_group()
print(json.dumps(results))
"""


def test_two_ranks_agree_with_gloo(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    theirs = results_of(PROGRAM, "torch", path)  # it writes a checkpoint first
    ours = results_of(PROGRAM, "rushlight", path)
    check_agreement(
        ours, theirs, lambda name: 0.02 if name.startswith(("low", "precision")) else 1e-4
    )
