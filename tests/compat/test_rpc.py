"""The same remote calls between two processes, here and in PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
from compat.ranks import check_agreement, results_of

pytest.importorskip("torch")

FRAMEWORKS = ("rushlight", "torch")

PROGRAM = r"""
import importlib, json, operator, os, pickle, sys, time, warnings
framework, path, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch = importlib.import_module(framework)
rpc = importlib.import_module(framework + ".distributed.rpc")
warnings.simplefilter("ignore")
sys.stderr = open(os.devnull, "w")  # PyTorch prints what functions raise
torch.set_num_threads(1)
results = {}

class Counter:
    def __init__(self, start=0):
        self.count = start
    def add(self, amount=1):
        self.count += amount
        return self.count
    def fail(self):
        raise KeyError("fail")

def divide(x, y=1):
    return x / y

def read(rref):
    return [rref.to_here().count, rref.is_owner(), rref.owner_name()]

def nested(name):
    return rpc.rpc_sync(name, divide, (6, 4))

@rpc.functions.async_execution
def later(name, x):
    return rpc.rpc_async(name, divide, (x, 2)).then(lambda done: done.wait() + 1)

def error(name, call):
    try:
        call()
        results[name] = "nothing"
    except BaseException as e:
        kinds = (AttributeError, KeyError, ZeroDivisionError, TypeError, ValueError, RuntimeError)
        results[name] = next(k.__name__ for k in kinds if isinstance(e, k))

error("before", lambda: rpc.rpc_sync("worker0", divide, (1,)))
options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{path}-{framework}")
results["options"] = [options.num_worker_threads, options.rpc_timeout]
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
me, other = f"worker{rank}", f"worker{1 - rank}"
info = rpc.get_worker_info(other)
results["info"] = [str(rpc.get_worker_info()), info.name, info.id, rpc.get_rpc_timeout()]
results["calls"] = [rpc.rpc_sync(to, divide, (3,), {"y": 2}) for to in (me, other, info, 1 - rank)]
results["tensor"] = rpc.rpc_sync(other, torch.add, (torch.ones(2, 3), 2)).tolist()
futures = [rpc.rpc_async(other, operator.neg, (i,)) for i in range(10)]
results["futures"] = [f.wait() for f in futures]
results["then"] = rpc.rpc_async(other, divide, (1, 4)).then(lambda f: f.wait() * 2).wait()
results["nested"] = rpc.rpc_sync(other, nested, (me,))
results["later"] = rpc.rpc_sync(other, later, (me, 3))
counter = rpc.remote(other, Counter, (3,))
while not counter.confirmed_by_owner():  # it may come later than the value
    time.sleep(0.01)
results["rref"] = [counter.to_here().count, counter.is_owner(), counter.owner_name(),
                   counter.owner().id, counter.confirmed_by_owner()]
results["methods"] = [counter.rpc_sync().add(2), counter.rpc_async().add().wait(),
                      counter.remote().add(amount=4).to_here()]
results["sent"] = [rpc.rpc_sync(to, read, (counter,)) for to in (me, other)]
own = rpc.RRef(Counter(7))
results["own"] = [own.is_owner(), own.local_value().count, rpc.rpc_sync(other, read, (own,))]
# Of rpc_sync and rpc_async PyTorch makes RuntimeErrors.
error("zero remote", lambda: rpc.remote(other, divide, (1, 0)).to_here())
error("attribute", lambda: counter.rpc_sync().nothing())
error("local value", lambda: counter.local_value())
error("pickle", lambda: pickle.dumps(counter))
error("nobody", lambda: rpc.rpc_sync("nobody", divide, (1,)))
error("no name", lambda: rpc.rpc_sync(1.5, divide, (1,)))
error("callable", lambda: rpc.rpc_sync(other, 3))
error("late", lambda: rpc.rpc_sync(other, time.sleep, (0.5,), timeout=0.1))
error("backend", lambda: rpc.init_rpc("again", 3))
rpc.shutdown()
error("after", lambda: rpc.rpc_sync("worker0", divide, (1,)))
print(json.dumps(results))
"""


def test_two_processes_agree_with_pytorch(tmp_path: Path) -> None:
    ours, theirs = (results_of(PROGRAM, name, tmp_path / "store") for name in FRAMEWORKS)
    check_agreement(ours, theirs, lambda name: 0)
