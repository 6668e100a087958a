"""Prints the graphs of torchvision's models as JSON: torchvision_graphs.py LIBRARY.

Owns the way in which torchvision's own source runs with either library: `rushlight` stands for
torch where it is asked for, and only the modules that the models need are imported.
"""

import importlib
import importlib.abc
import importlib.util
import json
import sys
import types
import warnings
from typing import Any

MODELS = {
    "resnet": "resnet18 resnext50_32x4d",
    "vgg": "vgg11_bn",
    "alexnet": "alexnet",
    "squeezenet": "squeezenet1_0",
    "densenet": "densenet121",
    "mobilenetv2": "mobilenet_v2",
    "mobilenetv3": "mobilenet_v3_small",
    "shufflenetv2": "shufflenet_v2_x0_5",
    "mnasnet": "mnasnet0_5",
    "googlenet": "googlenet",
    "inception": "inception_v3",
    "efficientnet": "efficientnet_b0",
    "regnet": "regnet_x_400mf",
    "convnext": "convnext_tiny",
    "vision_transformer": "vit_b_16",
    "swin_transformer": "swin_t",
    "maxvit": "maxvit_t",
}


class InsteadOfTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports torch.x as rushlight.x."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.split(".")[0] != "torch":
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec: Any) -> Any:
        module = importlib.import_module("rushlight" + spec.name.removeprefix("torch"))
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self.own_spec


class Nothing:
    """Stands for the transforms that come with weights."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


def stand_in(name: str, path: str | None = None, **names: Any) -> None:
    module: Any = types.ModuleType(name)
    module.__path__ = [] if path is None else [path]
    vars(module).update(names)
    sys.modules[name] = module


def install_torchvision(path: str) -> None:
    """Lets torchvision's models be imported without the rest of it."""
    modes = types.SimpleNamespace(BICUBIC=1, BILINEAR=2)
    stand_in("torchvision", path)
    stand_in("torchvision.extension", _has_ops=lambda: False)
    stand_in(
        "torchvision.utils",
        _log_api_usage_once=lambda obj: None,
        _make_ntuple=lambda x, n: tuple(x) if isinstance(x, (list, tuple)) else (x,) * n,
    )
    stand_in("torchvision.transforms")
    stand_in(
        "torchvision.transforms._presets", ImageClassification=Nothing, InterpolationMode=modes
    )
    stand_in("torchvision.transforms.functional", InterpolationMode=modes)
    stand_in("torchvision.models", f"{path}/models")
    stand_in("torchvision.ops", f"{path}/ops")
    for part in ("misc", "stochastic_depth"):
        names = vars(importlib.import_module(f"torchvision.ops.{part}"))
        for name in [name for name in names if not name.startswith("_")]:
            setattr(sys.modules["torchvision.ops"], name, names[name])


def graph_of(torch: Any, make: Any) -> list[Any]:
    """What each node of a model's graph does."""
    nodes = torch.fx.symbolic_trace(make(weights=None).eval()).graph.nodes
    return [
        (
            node.op,
            node.name,
            getattr(node.target, "__name__", node.target),
            [str(used) for used in node.all_input_nodes],
        )
        for node in nodes
    ]


def main() -> None:
    warnings.simplefilter("ignore")
    path = importlib.util.find_spec("torchvision").submodule_search_locations[0]
    if sys.argv[1] == "rushlight":
        sys.meta_path.insert(0, InsteadOfTorch())
    import torch
    import torch.hub

    vars(torch.hub).setdefault("_get_torch_home", lambda: "")
    install_torchvision(path)
    graphs = {}
    for module, names in MODELS.items():
        models = importlib.import_module(f"torchvision.models.{module}")
        for name in names.split():
            make = getattr(models, name)
            if name in ("googlenet", "inception_v3"):
                graphs[name] = graph_of(
                    torch, lambda weights, m=make: m(init_weights=False, aux_logits=False)
                )
            else:
                graphs[name] = graph_of(torch, make)
    json.dump(graphs, sys.stdout)


if __name__ == "__main__":
    main()
