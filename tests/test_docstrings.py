"""Every example in the docstrings of these modules runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import rushlight as torch
import rushlight.distributions

MODULES = [
    "rushlight.__config__",
    "rushlight.accelerator",
    "rushlight.amp.grad_scaler",
    "rushlight._creation",
    "rushlight._functional",
    "rushlight._grad_mode",
    "rushlight._legacy",
    "rushlight._linalg",
    "rushlight._printing",
    "rushlight._root_nn",
    "rushlight._settings",
    "rushlight._storage",
    "rushlight._tensor_memory",
    "rushlight._view_copies",
    "rushlight._tensor_override",
    "rushlight.autograd",
    "rushlight.autograd.functional",
    "rushlight.autograd.gradcheck",
    "rushlight.autograd.anomaly_mode",
    "rushlight.autograd.function",
    "rushlight.autograd.graph",
    "rushlight.autograd.variable",
    "rushlight.backends.cpu",
    "rushlight.compiler",
    "rushlight.cpu",
    "rushlight.distributed",
    "rushlight.distributed.backend",
    "rushlight.distributed.collectives",
    "rushlight.distributed.device_mesh",
    "rushlight.distributed.elastic.multiprocessing.errors",
    "rushlight.distributed.groups",
    "rushlight.distributed.objects",
    "rushlight.distributed.reduction",
    "rushlight.distributed.store",
    "rushlight.distributed.tcp_store",
    "rushlight.futures",
    "rushlight.fx._naming",
    "rushlight.fx._symbolic_trace",
    "rushlight.fx._wrapping",
    "rushlight.fx.experimental.optimization",
    "rushlight.fx.graph",
    "rushlight.fx.graph_module",
    "rushlight.fx.immutable_collections",
    "rushlight.fx.interpreter",
    "rushlight.fx.node",
    "rushlight.fx.passes.graph_drawer",
    "rushlight.fx.passes.shape_prop",
    "rushlight.fx.passes.split_module",
    "rushlight.fx.proxy",
    "rushlight.fx.subgraph_rewriter",
    "rushlight.hub",
    "rushlight._checkpoint.file_reader",
    "rushlight.jit",
    "rushlight.library",
    "rushlight.library._check",
    "rushlight.library._libraries",
    "rushlight.library._schema",
    "rushlight.multiprocessing",
    "rushlight.multiprocessing.channel",
    "rushlight.multiprocessing.spawn",
    "rushlight.overrides",
    "rushlight.nn.modules._hooks",
    "rushlight.optim._adafactor",
    "rushlight.optim._compound_schedules",
    "rushlight.optim._cyclic_schedules",
    "rushlight.optim._muon",
    "rushlight.optim._scheduler",
    "rushlight.optim._schedules",
    "rushlight.optim._swap",
    "rushlight.optim.adadelta",
    "rushlight.optim.adagrad",
    "rushlight.optim.adam",
    "rushlight.optim.adamax",
    "rushlight.optim.adamw",
    "rushlight.optim.asgd",
    "rushlight.optim.lbfgs",
    "rushlight.optim.nadam",
    "rushlight.optim.optimizer",
    "rushlight.optim.radam",
    "rushlight.optim.rmsprop",
    "rushlight.optim.rprop",
    "rushlight.optim.sgd",
    "rushlight.optim.sparse_adam",
    "rushlight.optim.swa_utils",
    "rushlight.quasirandom",
    "rushlight.random",
    "rushlight.serialization",
    "rushlight.signal.windows",
    "rushlight.testing._comparison",
    "rushlight.testing._creation",
    "rushlight.testing._older",
    "rushlight.utils.safetensors",
    "rushlight.utils.tensorboard",
    "rushlight.utils._selective_recompute",
    "rushlight.utils._swap",
    "rushlight.utils.benchmark._compare",
    "rushlight.utils.benchmark._measurement",
    "rushlight.utils.benchmark._timer",
    "rushlight.utils.checkpoint",
    "rushlight.utils.collect_env",
    "rushlight.utils.data.collate",
    "rushlight.utils.data.dataloader",
    "rushlight.utils.data.dataset",
    "rushlight.utils.data.distributed",
    "rushlight.utils.data.sampler",
    "rushlight.utils.data.worker_info",
    "rushlight.utils.dlpack",
    "rushlight.utils.flop_counter",
    "rushlight.utils.graph",
    "rushlight.utils.hooks",
    "rushlight.utils.weak",
    "rushlight.vision.datasets.fakedata",
    "rushlight.vision.datasets.folder",
    "rushlight.vision.datasets.samplers",
    "rushlight.vision.datasets.utils",
    "rushlight.vision.datasets.video_utils",
    "rushlight.vision.datasets.vision",
    "rushlight.vision.models._api",
    "rushlight.vision.models._utils",
    "rushlight.vision.models.detection._utils",
    "rushlight.vision.models.detection.anchor_utils",
    "rushlight.vision.models.detection.backbone_utils",
    "rushlight.vision.models.detection.faster_rcnn",
    "rushlight.vision.models.detection.mask_rcnn",
    "rushlight.vision.models.feature_extraction",
    "rushlight.vision.models.mnasnet",
    "rushlight.vision.models.segmentation.fcn",
    "rushlight.vision.ops.boxes",
    "rushlight.vision.ops.deform_conv",
    "rushlight.vision.ops.drop_block",
    "rushlight.vision.ops.feature_pyramid_network",
    "rushlight.vision.ops.losses",
    "rushlight.vision.ops.misc",
    "rushlight.vision.ops.poolers",
    "rushlight.vision.ops.rois",
    "rushlight.vision.ops.stochastic_depth",
]
NO_EXAMPLES = {"_chances", "_covariance", "_folded", "_kl_mixed", "_kl_same_family"}
NO_EXAMPLES |= {"_location_scale", "transforms"}
MODULES += [
    f"rushlight.distributions.{m.name}"
    for m in pkgutil.iter_modules(rushlight.distributions.__path__)
    if m.name not in NO_EXAMPLES
]


# Their examples call the namespace xp.
ARRAY_API = [
    f"rushlight.array_api.{name}"
    for name in (
        "_creation",
        "_data_types",
        "_elementwise",
        "_info",
        "_linear_algebra",
        "_manipulation",
        "_searching",
        "_statistical",
    )
]


@pytest.mark.parametrize("name", MODULES + ARRAY_API)
def test_examples_print_what_they_say(name) -> None:
    module = importlib.import_module(name)
    failed, attempted = doctest.testmod(module, extraglobs={"torch": torch, "xp": torch.array_api})
    assert attempted > 0
    assert failed == 0
