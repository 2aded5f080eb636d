# ruff: noqa: B023 (a loss is computed within its round of the loop)
"""Families of classes of the libraries, of each many members: a name is the package's, and which family."""

from __future__ import annotations

import torch
from steps import saved, train

nn, F = torch.nn, torch.nn.functional


def _graph() -> tuple:
    """Features of eight nodes, and edges both ways."""
    one_way = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6], [1, 2, 3, 4, 5, 6, 7, 0, 2, 4, 6, 0]])
    return torch.randn(8, 6), torch.cat([one_way, one_way.flip(0)], 1)


def layouts() -> list:
    """Adjacency matrices in every sparse layout, sums, means and extrema of neighbours, pooling by products of sparse matrices, networks for several kinds of nodes."""
    import torch_geometric.nn as G
    from torch_geometric.data import HeteroData
    from torch_geometric.utils import spmm, to_torch_coo_tensor, to_torch_csc_tensor, to_torch_csr_tensor

    x, edges = _graph()
    weights = torch.rand(edges.size(1))
    out = []
    for to_layout in (to_torch_coo_tensor, to_torch_csr_tensor, to_torch_csc_tensor):
        adjacency = to_layout(edges, weights, (8, 8))
        out += [adjacency.to_dense(), adjacency @ x]
        out += [spmm(adjacency, x, reduce) for reduce in ("sum", "mean", "max", "min")]
        normalised = [] if adjacency.layout is torch.sparse_csc else [G.GCNConv(6, 5)]  # which refuses columns
        for module in (*normalised, G.SAGEConv(6, 5), G.GINConv(nn.Linear(6, 5))):
            out += train(module, lambda: module(x, adjacency).square().mean(), 2)
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    pooling = G.ASAPooling(6, 0.5)
    out += [t for t in pooling(x, edges, None, groups) if torch.is_tensor(t)]
    out += train(pooling, lambda: pooling(x, edges, None, groups)[0].square().mean(), 2)
    data = HeteroData()
    data["a"].x, data["b"].x = torch.randn(5, 6), torch.randn(4, 3)
    data["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, 3, 0]])
    data["b", "back", "a"].edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    network = G.to_hetero(G.GraphSAGE((-1, -1), 8, 2, 3), data.metadata())
    with torch.no_grad():
        network(data.x_dict, data.edge_index_dict)
    return out + train(
        network, lambda: sum(v.square().mean() for v in network(data.x_dict, data.edge_index_dict).values())
    )


def convolutions() -> list:
    """Convolutions of graphs, trained."""
    import torch_geometric.nn as G

    x, edges = _graph()
    weights, attributes = torch.rand(edges.size(1)), torch.randn(edges.size(1), 4)
    kinds, places = torch.randint(0, 3, (edges.size(1),)), torch.randn(8, 3)

    def mlp(a, b):
        return nn.Sequential(nn.Linear(a, 8), nn.ReLU(), nn.Linear(8, b))

    out = []
    for module, arguments in (
        (G.ChebConv(6, 5, 3), (x, edges, weights)),
        (G.GATv2Conv(6, 5, 2, edge_dim=4), (x, edges, attributes)),
        (G.TransformerConv(6, 5, 2, beta=True, edge_dim=4), (x, edges, attributes)),
        (G.GINEConv(mlp(6, 5), edge_dim=4), (x, edges, attributes)),
        (G.RGCNConv(6, 5, 3, 2), (x, edges, kinds)),
        (
            G.PNAConv(6, 6, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([0, 2, 4, 2])),
            (x, edges),
        ),
        (G.GENConv(6, 5, learn_t=True), (x, edges)),
        (G.NNConv(6, 5, mlp(4, 30)), (x, edges, attributes)),
        (G.EdgeConv(mlp(12, 5)), (x, edges)),
        (G.PointTransformerConv(6, 5), (x, places, edges)),
        (G.GPSConv(6, G.GCNConv(6, 6), 2), (x, edges)),
        (G.ARMAConv(6, 5, 2, 2), (x, edges, weights)),
        (G.SuperGATConv(6, 5, 2), (x, edges)),
        (G.DenseGCNConv(6, 5), (x[None], torch.ones(1, 8, 8))),
    ):
        torch.manual_seed(1)
        out += train(module, lambda: module(*arguments).square().mean(), 2)
    return out


def kernels() -> list:
    """Kernels of Gaussian processes, with gradients."""
    import gpytorch

    K = gpytorch.kernels
    out = []
    for kernel in (
        K.RBFKernel(ard_num_dims=2),
        K.MaternKernel(0.5),
        K.MaternKernel(1.5),
        K.MaternKernel(2.5),
        K.PeriodicKernel(),
        K.CosineKernel(),
        K.PolynomialKernel(2),
        K.RQKernel(),
        K.SpectralMixtureKernel(2, ard_num_dims=2),
        K.PiecewisePolynomialKernel(q=2),
        K.ArcKernel(K.MaternKernel(2.5), ard_num_dims=2),
        K.RFFKernel(5, 2),
        K.ScaleKernel(K.RBFKernel() * K.LinearKernel() + K.MaternKernel()),
        K.RBFKernelGrad(),
    ):
        x, y = torch.rand(5, 2, requires_grad=True), torch.rand(4, 2)
        matrix = kernel(x, y).to_dense()
        matrix.square().sum().backward()
        out += [matrix, x.grad, kernel(y, diag=True)]
    return out


def operators() -> list:
    """Matrices that are never written out: products, solutions, determinants, samples."""
    import linear_operator.operators as O

    a = torch.randn(5, 5)
    matrix = (a @ a.t() + 5 * torch.eye(5)).requires_grad_()
    dense = O.DenseLinearOperator(matrix)
    out = []
    for operator in (
        dense,
        O.AddedDiagLinearOperator(dense, O.DiagLinearOperator(torch.ones(5))),
        O.KroneckerProductLinearOperator(dense, O.DenseLinearOperator(torch.eye(2) * 2)),
        O.ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.2, 0.1])),
        O.BlockDiagLinearOperator(O.DenseLinearOperator(torch.stack([matrix, matrix]))),
        O.LowRankRootLinearOperator(matrix[:, :2]) + O.DiagLinearOperator(torch.ones(5)),
        O.MulLinearOperator(dense, dense),
    ):
        right = torch.randn(operator.shape[-1], 2)
        out += [operator @ right, operator.solve(right), operator.logdet(), operator.diagonal()]
        out += list(operator.inv_quad_logdet(right, True))
    (dense @ torch.ones(5, 2)).square().sum().backward()
    return [*out, matrix.grad]


def guides() -> list:
    """Guides that are made of models, enumeration of discrete variables, predictions."""
    import pyro
    import pyro.distributions as dist
    from pyro.infer import SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, autoguide, config_enumerate

    data = torch.randn(20) + 3

    def model():
        mean = pyro.sample("mean", dist.Normal(0.0, 10.0))
        scale = pyro.sample("scale", dist.HalfCauchy(2.0))
        with pyro.plate("data", 20):
            pyro.sample("seen", dist.Normal(mean, scale), obs=data)

    out = []
    for guide_of in (autoguide.AutoNormal, autoguide.AutoMultivariateNormal, autoguide.AutoDelta):
        pyro.clear_param_store()
        pyro.set_rng_seed(0)
        guide = guide_of(model)
        steps = SVI(model, guide, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO(num_particles=2))
        out += [torch.tensor(steps.step()) for _ in range(3)]
        out += [value for _, value in sorted(guide.median().items())]
    pyro.set_rng_seed(1)
    out += [value for _, value in sorted(Predictive(model, guide=guide, num_samples=3)().items())]

    @config_enumerate
    def mixture():
        weights = pyro.sample("weights", dist.Dirichlet(torch.ones(2)))
        with pyro.plate("kinds", 2):
            centre = pyro.sample("centre", dist.Normal(0.0, 5.0))
        with pyro.plate("data", 20):
            kind = pyro.sample("kind", dist.Categorical(weights))
            pyro.sample("seen", dist.Normal(centre[kind], 1.0), obs=data)

    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    guide = autoguide.AutoDelta(pyro.poutine.block(mixture, expose=["weights", "centre"]))
    steps = SVI(mixture, guide, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
    return out + [torch.tensor(steps.step()) for _ in range(3)]


def masks_and_images() -> list:
    """Losses of masks and of images, with their gradients."""
    import monai.losses as L

    scores = torch.randn(2, 3, 8, 8, requires_grad=True)
    labels = torch.randint(0, 3, (2, 1, 8, 8))
    masks = F.one_hot(labels[:, 0], 3).permute(0, 3, 1, 2).float()
    named = {"softmax": True, "to_onehot_y": True}
    out = [
        L.DiceLoss(squared_pred=True, jaccard=True, **named)(scores, labels),
        L.GeneralizedDiceLoss(**named)(scores, labels),
        L.GeneralizedWassersteinDiceLoss(torch.ones(3, 3) - torch.eye(3))(scores, labels),
        L.DiceFocalLoss(**named)(scores, labels),
        L.TverskyLoss(**named)(scores, labels),
        L.HausdorffDTLoss(**named)(scores, labels),
        L.SoftDiceclDiceLoss()(scores.softmax(1), masks),
        L.SSIMLoss(2, win_size=5)(scores, masks),
        L.GlobalMutualInformationLoss()(scores.sigmoid(), masks),
        L.LocalNormalizedCrossCorrelationLoss(2)(scores, masks),
        L.BendingEnergyLoss()(scores[:, :2]),
        L.JukeboxLoss(2)(scores, masks),
        L.NACLLoss(3, 2, kernel_size=3)(scores, labels[:, 0]),
    ]
    sum(value.sum() for value in out).backward()
    return [*out, scores.grad]


def geometry() -> list:
    """Rotations, cameras, homographies and warps, with their gradients."""
    import kornia.geometry as G

    image = torch.rand(2, 3, 12, 14, requires_grad=True)
    affine = torch.tensor([[[0.9, 0.1, 1.0], [-0.1, 1.1, -0.5]]]).repeat(2, 1, 1)
    out = [
        G.warp_affine(image, affine, (10, 12), padding_mode="border"),
        G.shear(image, torch.tensor([[0.1, 0.2], [0.0, 0.3]])),
        G.pyrdown(image),
        G.elastic_transform2d(image, torch.rand(2, 2, 12, 14) * 2 - 1),
        G.resize(image, 9, antialias=True),
        G.remap(image, torch.rand(2, 12, 14) * 11, torch.rand(2, 12, 14) * 11),
    ]
    sum(value.square().sum() for value in out).backward()
    axis = torch.tensor([[0.1, 0.2, 0.3], [1.0, -0.5, 0.2]], requires_grad=True)
    rotation, quaternion = G.axis_angle_to_rotation_matrix(axis), G.axis_angle_to_quaternion(axis)
    (rotation.square() + 1).log().sum().add(quaternion.sum()).backward()
    points = torch.rand(1, 12, 2, dtype=torch.float64)
    homography = torch.tensor([[[1.1, 0.1, 0.2], [-0.1, 0.9, 0.1], [0.1, 0.05, 1.0]]], dtype=torch.float64)
    moved = G.transform_points(homography, points)
    return [
        *out,
        image.grad,
        rotation,
        quaternion,
        axis.grad,
        G.rotation_matrix_to_axis_angle(rotation),
        G.rotation_matrix_to_quaternion(rotation),
        G.find_homography_dlt(points, moved),
        G.undistort_points(torch.rand(1, 5, 2), torch.eye(3)[None], torch.rand(1, 4) * 0.1),
        G.Se3.exp(torch.rand(2, 6)).matrix(),
    ]


def denoisers() -> list:
    """Transformers that take noise out of images, and another autoencoder."""
    import diffusers as D

    x, text, t = torch.randn(2, 4, 8, 8), torch.randn(2, 5, 12), torch.tensor([1, 5])
    common = {
        "num_attention_heads": 2,
        "attention_head_dim": 8,
        "in_channels": 4,
        "num_layers": 1,
        "sample_size": 8,
        "patch_size": 2,
    }
    torch.manual_seed(0)
    dit = D.DiTTransformer2DModel(**common, out_channels=8, num_embeds_ada_norm=10, norm_num_groups=4)
    out = train(dit, lambda: dit(x, timestep=t, class_labels=torch.tensor([1, 2])).sample.square().mean(), 2)
    torch.manual_seed(0)
    sd3 = D.SD3Transformer2DModel(
        **common, out_channels=4, joint_attention_dim=12, caption_projection_dim=16, pooled_projection_dim=10, pos_embed_max_size=8
    )  # fmt: skip
    out += train(sd3, lambda: sd3(x, text, torch.ones(2, 10), t).sample.square().mean(), 2)
    torch.manual_seed(0)
    flux = D.FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=12,
        pooled_projection_dim=10, axes_dims_rope=[4, 4, 8],
    )  # fmt: skip
    hidden, places = torch.randn(2, 6, 4), torch.arange(18.0).view(6, 3)
    out += train(
        flux,
        lambda: (
            flux(hidden, text, torch.ones(2, 10), t / 10, img_ids=places, txt_ids=torch.zeros(5, 3))
            .sample.square()
            .mean()
        ),
        2,
    )
    torch.manual_seed(0)
    vq = D.VQModel(
        block_out_channels=(8, 16), norm_num_groups=4, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
        num_vq_embeddings=16, latent_channels=3,
    )  # fmt: skip
    image = torch.randn(2, 3, 16, 16)
    out += train(vq, lambda: vq(image).sample.square().mean(), 2)
    return [*out, saved(vq).eval()(image).sample]


def joined() -> list:
    """Adapters of one model joined in every way, and optimizers for adapters."""
    import peft
    import transformers
    from peft.optimizers import create_lorafa_optimizer, create_loraplus_optimizer

    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, pad_token_id=0
    )  # fmt: skip
    adapter = {"r": 4, "task_type": "CAUSAL_LM", "target_modules": ["q_proj", "v_proj"]}
    ids = torch.randint(1, 60, (2, 7))
    torch.manual_seed(0)
    model = peft.get_peft_model(
        transformers.LlamaForCausalLM(config), peft.LoraConfig(init_lora_weights=False, **adapter), adapter_name="a"
    ).eval()
    model.add_adapter("b", peft.LoraConfig(init_lora_weights=False, **adapter))
    out = []
    for kind in ("linear", "svd", "cat", "ties", "dare_linear", "dare_ties", "magnitude_prune", "ties_svd"):
        torch.manual_seed(1)
        density = {} if kind in ("linear", "svd", "cat") else {"density": 0.5}
        model.add_weighted_adapter(["a", "b"], [0.7, 0.3], kind, kind, **density)
        model.set_adapter(kind)
        out.append(model(input_ids=ids).logits)
    model.set_adapter("a")
    with model.disable_adapter():
        out.append(model(input_ids=ids).logits)
    out.append(model.base_model(input_ids=ids, adapter_names=["a", "b"]).logits)
    for make in (
        lambda m: create_loraplus_optimizer(m, torch.optim.AdamW, lr=0.01, loraplus_lr_ratio=4),
        lambda m: create_lorafa_optimizer(m, 4, 8, lr=0.01),
    ):
        torch.manual_seed(0)
        trained = peft.get_peft_model(transformers.LlamaForCausalLM(config), peft.LoraConfig(**adapter))
        optimizer = make(trained)
        out += train(trained, lambda: trained(input_ids=ids, labels=ids).loss, 3, lambda ps: optimizer)
    return out


def optimizers() -> list:
    """Every optimizer of timm that takes plain gradients, and its schedules."""
    from timm.optim import create_optimizer_v2
    from timm.scheduler import CosineLRScheduler, PolyLRScheduler, StepLRScheduler, TanhLRScheduler

    out = []
    for name in (
        "adabelief adadelta adagrad adamax adan adopt cadamw claprop cnadamw lamb laprop lars lion lookahead_adam madgradw mars nadam nadamw novograd radam "
        "rmsprop rmsproptf sgdp sgdw"
    ).split():
        torch.manual_seed(0)
        module, x = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), torch.randn(5, 4)
        out += train(
            module,
            lambda: module(x).square().mean(),
            3,
            lambda ps: create_optimizer_v2(module, opt=name, lr=0.01, weight_decay=0.01),
        )
    for kind, options in (
        (CosineLRScheduler, {"t_initial": 10, "warmup_t": 3, "noise_range_t": (2, 8)}),
        (StepLRScheduler, {"decay_t": 3}),
        (TanhLRScheduler, {"t_initial": 10}),
        (PolyLRScheduler, {"t_initial": 10}),
    ):
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)
        schedule, rates = kind(optimizer, **options), []
        for epoch in range(10):
            schedule.step(epoch)
            rates.append(optimizer.param_groups[0]["lr"])
        out.append(torch.tensor(rates))
    return out


PROGRAMS = {
    "diffusers.denoisers": denoisers,
    "gpytorch.kernels": kernels,
    "kornia.geometry": geometry,
    "linear_operator.operators": operators,
    "monai.losses": masks_and_images,
    "peft.joined": joined,
    "pyro.guides": guides,
    "timm.optimizers": optimizers,
    "torch_geometric.convolutions": convolutions,
    "torch_geometric.layouts": layouts,
}
"""The programs by the package that each is about, and which family."""
