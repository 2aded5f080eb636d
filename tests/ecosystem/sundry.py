# ruff: noqa: B023 (a loss is computed within its round of the loop)
"""Parts of the libraries that the other programs leave out: further losses and miners, solvers, loaders, aggregations, attributions, networks."""

from __future__ import annotations

import tempfile

import torch
from steps import train

nn, F = torch.nn, torch.nn.functional


def _sgd(parameters):
    return torch.optim.SGD(parameters, 0.01)


def further_losses() -> list:
    """Losses of embeddings with weights of their own and without, over distances, reducers and a memory of batches; miners."""
    from pytorch_metric_learning import distances, losses, miners, reducers

    out = []
    y = torch.arange(16) // 4
    for make in (
        losses.AngularLoss,
        lambda: losses.CosFaceLoss(4, 8),
        losses.FastAPLoss,
        losses.GeneralizedLiftedStructureLoss,
        losses.IntraPairVarianceLoss,
        lambda: losses.LargeMarginSoftmaxLoss(4, 8),
        lambda: losses.MarginLoss(learn_beta=True, num_classes=4),
        losses.NCALoss,
        lambda: losses.NormalizedSoftmaxLoss(4, 8),
        losses.NPairsLoss,
        losses.PNPLoss,
        lambda: losses.ProxyNCALoss(4, 8),
        losses.SignalToNoiseRatioContrastiveLoss,
        lambda: losses.SubCenterArcFaceLoss(num_classes=4, embedding_size=8),
        losses.TupletMarginLoss,
        lambda: losses.CrossBatchMemory(losses.ContrastiveLoss(), 8, memory_size=24),
        lambda: losses.ContrastiveLoss(distance=distances.SNRDistance(), reducer=reducers.PerAnchorReducer()),
        lambda: losses.TripletMarginLoss(
            distance=distances.LpDistance(p=1), reducer=reducers.ThresholdReducer(low=0.1)
        ),
    ):
        torch.manual_seed(0)
        module, x, loss = nn.Linear(5, 8), torch.randn(16, 5), make()
        out += train(module, lambda: loss(module(x), y), 2, _sgd)
    found = module(x)
    for miner in (miners.AngularMiner(), miners.BatchEasyHardMiner(), miners.BatchHardMiner(), miners.PairMarginMiner(), miners.TripletMarginMiner(type_of_triplets="semihard")):  # fmt: skip
        out += miner(found, y)
    return out


def solvers() -> list:
    """Every solver of ordinary differential equations, gradients through solvers, and the time of an event."""
    from torchdiffeq import odeint, odeint_adjoint, odeint_event

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

        def forward(self, t, y):
            return self.net(y**3) - 0.1 * y * t

    field, start, times = Field(), torch.tensor([[2.0, 0.0], [0.5, -1.0]]), torch.linspace(0, 1.5, 6)
    out = []
    for method in (
        "dopri8",
        "bosh3",
        "fehlberg2",
        "adaptive_heun",
        "heun2",
        "heun3",
        "explicit_adams",
        "implicit_adams",
    ):
        fixed = method.startswith(("heun", "explicit", "implicit"))
        found = odeint(field, start, times, method=method, options={"step_size": 0.1} if fixed else {})
        field.zero_grad()
        found.square().mean().backward()
        out += [found, field.net[0].weight.grad.clone()]
    out += train(
        field, lambda: odeint_adjoint(field, start, times, adjoint_options={"norm": "seminorm"}).square().mean()
    )
    height = torch.tensor([10.0], requires_grad=True)
    state = (height, torch.tensor([-3.0]))
    time, reached = odeint_event(
        lambda t, y: (y[1], torch.full_like(y[1], -9.8)), state, torch.tensor(0.0), event_fn=lambda t, y: y[0], odeint_interface=odeint, atol=1e-7, rtol=1e-7
    )  # fmt: skip
    time.backward()
    return [*out, time, *reached, height.grad]


def batches() -> list:
    """Batches of several processes' shares, with and without shuffling, of iterables, and after some that are left out."""
    from accelerate import Accelerator, skip_first_batches
    from accelerate.data_loader import BatchSamplerShard, IterableDatasetShard
    from accelerate.utils import concatenate, convert_to_fp32, pad_across_processes

    class Numbers(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(11))

    accelerator, data = Accelerator(cpu=True), torch.utils.data.TensorDataset(torch.arange(13.0))
    loader = accelerator.prepare(torch.utils.data.DataLoader(data, 4, shuffle=True))
    out = [torch.cat([batch[0] for batch in loader]) for _ in range(2)]
    out += [batch[0] for batch in skip_first_batches(loader, 2)]
    sampler = torch.utils.data.BatchSampler(range(22), 3, False)
    for rank in range(2):
        out += [torch.tensor(batch) for batch in BatchSamplerShard(sampler, 2, rank)]
        out.append(torch.tensor(list(IterableDatasetShard(Numbers(), 2, False, 2, rank))))
    out += list(accelerator.prepare(torch.utils.data.DataLoader(Numbers(), 3)))
    joined = concatenate([{"a": torch.ones(2)}, {"a": torch.zeros(3)}])
    return [*out, joined["a"], convert_to_fp32({"x": torch.ones(2).half()})["x"], pad_across_processes(torch.ones(3))]


def tables() -> list:
    """Tables whose rows are tensors: formats, changes by functions, orders, batches of several workers."""
    import datasets

    datasets.disable_progress_bars()
    table = datasets.Dataset.from_dict(
        {"a": [1, 2, 3, 4, 5, 6], "b": [[0.5, 1.5]] * 3 + [[2.0, 3.0]] * 3, "r": [[1], [1, 2], [1, 2, 3]] * 2}
    ).with_format("torch")
    out = [table[0]["b"], table[1:4]["a"], *table[:3]["r"]]
    plain = table.remove_columns("r")
    loader = torch.utils.data.DataLoader(plain, 4, shuffle=True, generator=torch.Generator().manual_seed(1))
    out += [value for batch in loader for value in batch.values()]
    out.append(table.map(lambda row: {"z": row["a"] * 2.5 + row["b"].sum()})["z"][:])
    out.append(table.map(lambda rows: {"m": rows["b"].mean(1)}, batched=True, batch_size=2)["m"][:])
    out += [table.filter(lambda row: row["a"] > 3)["a"][:], table.shuffle(seed=0)["a"][:]]
    out.append(table.with_format("torch", columns=["a"], dtype=torch.float16)[:]["a"])
    split = table.train_test_split(0.5, seed=1)
    out += [split["train"]["a"][:], split["test"]["a"][:]]
    stream = plain.to_iterable_dataset(num_shards=2)
    out += [row["b"] for row in stream.shuffle(seed=0, buffer_size=4).skip(2)]
    return [*out, *(batch["a"] for batch in torch.utils.data.DataLoader(stream, 2, num_workers=2))]


def aggregations() -> list:
    """What nodes' groups and neighbours give, with gradients; indices that know their sizes, an index with a number added among them."""
    import torch_geometric as pyg
    from torch_geometric.nn import aggr

    x, groups = torch.randn(8, 6), torch.tensor([0] * 3 + [1] * 5)
    out = []
    for make in (
        aggr.MedianAggregation,
        aggr.StdAggregation,
        lambda: aggr.SoftmaxAggregation(learn=True),
        lambda: aggr.PowerMeanAggregation(learn=True),
        lambda: aggr.LSTMAggregation(6, 4),
        lambda: aggr.GRUAggregation(6, 4),
        lambda: aggr.Set2Set(6, 2),
        lambda: aggr.SortAggregation(2),
        lambda: aggr.AttentionalAggregation(nn.Linear(6, 1)),
        lambda: aggr.SetTransformerAggregation(6, heads=2),
        lambda: aggr.QuantileAggregation([0.2, 0.7]),
        lambda: aggr.LCMAggregation(6, 4, project=True),
    ):
        torch.manual_seed(0)
        module, given = make(), x.clone().requires_grad_()
        found = module(given, groups)
        found.square().sum().backward()
        out += [found, given.grad]
    index = pyg.Index(torch.tensor([0, 0, 1, 2]), dim_size=3, is_sorted=True)
    more = index + 1
    out += [index.get_indptr(), more.as_tensor(), torch.tensor(more.dim_size), (index == 0).float()]
    edges = pyg.EdgeIndex([[0, 1, 1, 2], [1, 0, 2, 1]], sparse_size=(3, 3), sort_order="row")
    return [*out, edges.matmul(x[:3]), edges.get_csr()[0][0], edges.flip(0).as_tensor()]


def measured() -> list:
    """How far attributions may be trusted, examples that mislead a model, and which examples taught it something."""
    import captum.attr as A
    from captum import metrics, robust
    from captum.influence import TracInCP, TracInCPFast

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3)).eval()
    x, targets = torch.randn(3, 4), torch.tensor([0, 1, 2])
    saliency = A.Saliency(model)
    masks = torch.tensor([[0, 0, 1, 2]])
    out = [
        *A.IntegratedGradients(model).attribute(
            x, target=targets, method="riemann_trapezoid", return_convergence_delta=True, internal_batch_size=4
        ),
        A.ShapleyValues(model).attribute(x[:1], target=1, feature_mask=masks),
        A.FeaturePermutation(model).attribute(x, target=1, feature_mask=masks),
        *A.LayerActivation(model, [model[0], model[2]]).attribute(x),
        A.LayerDeepLiftShap(model, model[2]).attribute(x, torch.randn(5, 4), target=0),
        A.LayerFeatureAblation(model, model[2]).attribute(x, target=0),
        A.NeuronConductance(model, model[2]).attribute(x, neuron_selector=1, target=0, n_steps=5),
        A.NeuronGradient(model, model[2]).attribute(x, (1,)),
        metrics.infidelity(
            model, lambda given: (given * 0.1, given * 0.9), x, saliency.attribute(x, target=1), target=1
        ),
        metrics.sensitivity_max(saliency.attribute, x, target=1, n_perturb_samples=3),
        robust.FGSM(model, lower_bound=-1, upper_bound=1).perturb(x, 0.1, targets),
        robust.PGD(model).perturb(x, 0.2, 0.05, 3, targets, norm="L2"),
    ]
    lower = nn.Sequential(nn.Linear(4, 3))
    data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randint(0, 3, (8,)))
    file = tempfile.mkdtemp() + "/weights.pt"
    torch.save(lower.state_dict(), file)

    def load(module, path):
        module.load_state_dict(torch.load(path))
        return 1.0

    given = (data.tensors[0][:2], data.tensors[1][:2])
    common = {"batch_size": 4, "loss_fn": nn.CrossEntropyLoss(reduction="sum")}
    every = TracInCP(lower, data, [file], load, sample_wise_grads_per_batch=True, **common)
    out += [every.influence(given), *every.influence(given, k=2)]
    return [*out, TracInCPFast(lower, lower[0], data, [file], load, **common).influence(given)]


def networks() -> list:
    """Networks of medical images, each with the gradient of its first weights."""
    import monai.networks.nets as N

    flat, solid = torch.randn(1, 1, 32, 32), torch.randn(1, 1, 16, 16, 16)
    out = []
    for make, x in (
        (lambda: N.AttentionUnet(2, 1, 2, (4, 8, 16), (2, 2)), flat),
        (lambda: N.BasicUNetPlusPlus(2, 1, 2, features=(4, 4, 8, 8, 16, 4)), flat),
        (lambda: N.DynUNet(2, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[4, 8, 8], res_block=True), flat),
        (lambda: N.UNETR(1, 2, (16, 16, 16), feature_size=4, hidden_size=24, mlp_dim=32, num_heads=2), solid),
        (lambda: N.ResNet("basic", [1] * 4, [4, 8, 8, 8], n_input_channels=1, num_classes=3), solid),
        (
            lambda: N.ViTAutoEnc(
                1, (32, 32), (4, 4), hidden_size=24, mlp_dim=32, num_layers=1, num_heads=2, spatial_dims=2
            ),
            flat,
        ),
        (lambda: N.SegResNetDS(2, 8, 1, 2, blocks_down=(1, 1), dsdepth=2), flat),
        (lambda: N.LocalNet(2, 1, 4, (0, 1, 2)), flat),
        (lambda: N.AutoencoderKL(2, 1, 1, (1, 1), (8, 8), (False, False), 2, norm_num_groups=4), flat),
    ):
        torch.manual_seed(0)
        module = make().eval()
        found = module(x)
        while not torch.is_tensor(found):
            found = found[0]
        found.square().mean().backward()
        out += [found, next(p.grad for p in module.parameters() if p.grad is not None)]
    return out


def detectors() -> list:
    """Detectors of boxes, masks and keypoints, of one stage and of two, in float64: losses with gradients, and what they find."""
    from torchvision.models import detection

    images = [torch.rand(3, 64, 64).double(), torch.rand(3, 56, 72).double()]
    boxes = torch.tensor([[5.0, 6.0, 30.0, 40.0], [20.0, 15.0, 50.0, 50.0]]).double()
    masks = torch.zeros(2, 64, 72, dtype=torch.uint8)
    masks[0, 6:40, 5:30] = masks[1, 15:50, 20:50] = 1
    points = torch.cat([boxes[:, None, :2] + torch.tensor([[3.0, 4.0], [9.0, 7.0]]), torch.ones(2, 2, 1)], 2).float()
    bare = {"weights": None, "weights_backbone": None}
    out = []
    for make, classes in (
        (detection.fasterrcnn_mobilenet_v3_large_320_fpn, 4),
        (detection.retinanet_resnet50_fpn, 4),
        (detection.fcos_resnet50_fpn, 4),
        (detection.maskrcnn_resnet50_fpn, 4),
        (lambda **options: detection.keypointrcnn_resnet50_fpn(num_keypoints=2, **options), 2),
    ):
        torch.manual_seed(0)
        model = make(num_classes=classes, **bare).double()
        model.transform.min_size, model.transform.max_size = (64,), 80
        targets = [
            {"boxes": boxes, "labels": torch.tensor([1, classes - 1]), "masks": masks[:, : x.shape[1], : x.shape[2]], "keypoints": points}
            for x in images
        ]  # fmt: skip
        losses = model.train()(images, targets)
        sum(losses.values()).backward()
        out += [loss for _, loss in sorted(losses.items())]
        out.append(next(p.grad for p in model.parameters() if p.grad is not None))
        with torch.no_grad():
            found = model.eval()(images[:1])[0]
        out += [value[:20] for _, value in sorted(found.items())]
    return out


def mixed_bytes() -> list:
    """Changes of images of bytes and of floats, of colours and of places."""
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as V

    out = []
    for image in ((torch.rand(3, 37, 45) * 255).to(torch.uint8), torch.rand(3, 37, 45)):
        out += [V.adjust_brightness(image, 1.3), V.adjust_contrast(image, 0.6), V.adjust_saturation(image, 1.7)]
        out += [V.adjust_hue(image, -0.2), V.adjust_sharpness(image, 0.3), V.gaussian_blur(image, [3, 5])]
        out += [V.affine(image, 12.0, [2, 3], 1.2, [4.0, 5.0]), V.rotate(image, 33, expand=True)]
        for change in (
            v2.ColorJitter(0.5, 0.4, 0.3, 0.2),
            v2.RandomPhotometricDistort(p=1),
            v2.RandomResizedCrop(24),
            v2.ScaleJitter((30, 30)),
            v2.RandAugment(),
            v2.TrivialAugmentWide(),
            v2.AugMix(),
        ):
            torch.manual_seed(1)
            out.append(change(image))
    return out


PROGRAMS = {
    "accelerate.batches": batches,
    "captum.measured": measured,
    "datasets.tables": tables,
    "monai.networks": networks,
    "pytorch_metric_learning.further": further_losses,
    "torch_geometric.aggregations": aggregations,
    "torchdiffeq.solvers": solvers,
    "torchvision.detectors": detectors,
    "torchvision.mixed_bytes": mixed_bytes,
}
"""The programs by the package that each is about, and what of it."""
