# ruff: noqa: B023 (a loss is computed within its round of the loop)
"""What people do with libraries over torch, as small programs, what is no model (solvers, processes, metrics, losses, loops): each gives tensors, which must be PyTorch's from the same seed."""

from __future__ import annotations

import tempfile

import numpy as np
import torch
from steps import train

nn, F = torch.nn, torch.nn.functional


def einops() -> list:
    """Rearrangement, reduction and a layer of them."""
    from einops import rearrange, reduce
    from einops.layers.torch import EinMix, Rearrange

    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    y = rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2)
    m = nn.Sequential(
        Rearrange("b n d -> b d n"), nn.Linear(16, 4), EinMix("b d n -> b n k", weight_shape="d k", d=12, k=5)
    )
    z = m(y)
    r = reduce(z, "b n k -> b k", "max")
    r.sum().backward()
    return [r, x.grad, *train(m, lambda: m(y.detach()).square().mean())]


def kornia() -> list:
    """Filters, colours, geometry and losses of images."""
    import kornia

    x = torch.rand(1, 3, 16, 16, requires_grad=True)
    out = [
        kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)),
        kornia.color.rgb_to_hsv(x),
        kornia.color.rgb_to_lab(x),
        kornia.filters.sobel(x),
        kornia.geometry.transform.rotate(x, torch.tensor([30.0])),
        kornia.losses.ssim_loss(x, x.detach() * 0.9, 5),
        kornia.morphology.dilation(x, torch.ones(3, 3)),
        kornia.enhance.adjust_contrast(x, 0.7),
        kornia.geometry.transform.resize(x, (8, 8)),
        kornia.geometry.warp_perspective(x, torch.eye(3)[None] + 0.01, (16, 16)),
        kornia.feature.harris_response(x.mean(1, keepdim=True)),
        kornia.filters.median_blur(x, (3, 3)),
        kornia.filters.canny(x)[0],
    ]
    sum(o.sum() for o in out).backward()
    return [*out, x.grad]


def torchmetrics() -> list:
    """Metrics of classes, regressions and images."""
    import torchmetrics as tm

    p = torch.rand(20, 4).softmax(1)
    t = torch.randint(0, 4, (20,))
    out = []
    for m in (
        tm.Accuracy("multiclass", num_classes=4),
        tm.F1Score("multiclass", num_classes=4, average="macro"),
        tm.AUROC("multiclass", num_classes=4),
        tm.ConfusionMatrix("multiclass", num_classes=4),
        tm.CalibrationError("multiclass", num_classes=4),
        tm.AveragePrecision("multiclass", num_classes=4),
        tm.CohenKappa("multiclass", num_classes=4),
        tm.MatthewsCorrCoef("multiclass", num_classes=4),
    ):
        m.update(p, t)
        out.append(m.compute())
    for m in (
        tm.MeanSquaredError(),
        tm.R2Score(),
        tm.PearsonCorrCoef(),
        tm.SpearmanCorrCoef(),
        tm.MeanAbsoluteError(),
        tm.ExplainedVariance(),
    ):
        m.update(p[:, 0], p[:, 1])
        out.append(m.compute())
    from torchmetrics.image import PeakSignalNoiseRatio as P, StructuralSimilarityIndexMeasure as S

    a = torch.rand(1, 3, 16, 16)
    b = a * 0.8
    for m in (S(data_range=1.0), P(data_range=1.0)):
        m.update(a, b)
        out.append(m.compute())
    return out


def torchdiffeq() -> list:
    """Solvers of ordinary differential equations, and their adjoint."""
    from torchdiffeq import odeint, odeint_adjoint

    f = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = f

        def forward(self, t, y):
            return self.f(y)

    o = Field()
    y = torch.randn(3, 2)
    t = torch.linspace(0, 1, 4)
    out = []
    for m in ("dopri5", "rk4", "euler", "midpoint", "adaptive_heun", "bosh3", "implicit_adams", "dopri8"):
        out.append(odeint(o, y, t, method=m))
    out += train(o, lambda: odeint_adjoint(o, y, t).square().mean())
    return out


def torchsde() -> list:
    """A stochastic differential equation, trained."""
    import torchsde

    class S(nn.Module):
        noise_type = "diagonal"
        sde_type = "ito"

        def __init__(self):
            super().__init__()
            self.mu = nn.Linear(2, 2)
            self.s = nn.Linear(2, 2)

        def f(self, t, y):
            return self.mu(y)

        def g(self, t, y):
            return self.s(y).sigmoid() * 0.1

    s = S()
    y0 = torch.ones(3, 2)
    ts = torch.linspace(0, 1, 3)

    def value():
        return (
            torchsde.sdeint(
                s, y0, ts, bm=torchsde.BrownianInterval(0.0, 1.0, size=(3, 2), entropy=3), method="euler", dt=0.1
            )
            .square()
            .mean()
        )

    return train(s, value)


def gpytorch() -> list:
    """A Gaussian process, fitted and asked."""
    import gpytorch

    x = torch.linspace(0, 1, 20)
    y = torch.sin(x * 6)

    class G(gpytorch.models.ExactGP):
        def __init__(self, x, y, value):
            super().__init__(x, y, value)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    lik = gpytorch.likelihoods.GaussianLikelihood()
    m = G(x, y, lik)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(lik, m)
    m.train()
    lik.train()
    out = train(m, lambda: -mll(m(x), y), 5, lambda p: torch.optim.Adam(p, 0.1))
    m.eval()
    lik.eval()
    with torch.no_grad():
        p = lik(m(torch.linspace(0, 1, 7)))
        out += [p.mean, p.variance]
    return out


def botorch() -> list:
    """A surrogate, fitted by scipy, an acquisition function and its maximum."""
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    X = torch.rand(8, 2, dtype=torch.double)
    Y = X.sin().sum(1, keepdim=True)
    g = SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(g.likelihood, g))
    post = g.posterior(torch.full((3, 2), 0.3, dtype=torch.double))
    a = LogExpectedImprovement(g, best_f=Y.max())
    c, v = optimize_acqf(
        a, bounds=torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double), q=1, num_restarts=2, raw_samples=8
    )
    return [post.mean, post.variance, a(X[:3, None]), c, v]


def pyro() -> list:
    """Variational inference, and NUTS."""
    import pyro
    import pyro.distributions as d
    from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO

    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    data = torch.randn(20) + 3

    def model():
        mu = pyro.sample("mu", d.Normal(0.0, 10.0))
        s = pyro.sample("s", d.LogNormal(0.0, 1.0))
        with pyro.plate("d", 20):
            pyro.sample("o", d.Normal(mu, s), obs=data)

    def guide():
        value = pyro.param("l", torch.tensor(0.0))
        sc = pyro.param("sc", torch.tensor(1.0), constraint=d.constraints.positive)
        pyro.sample("mu", d.Normal(value, sc))
        pyro.sample("s", d.LogNormal(pyro.param("a", torch.tensor(0.0)), 0.1))

    s = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    out = [torch.tensor(s.step()) for _ in range(10)]
    pyro.set_rng_seed(1)
    m = MCMC(NUTS(model), num_samples=5, warmup_steps=5, disable_progbar=True)
    m.run()
    out += [m.get_samples()["mu"]]
    return out


def captum() -> list:
    """Attributions."""
    from captum.attr import (
        LRP,
        DeepLift,
        FeatureAblation,
        GradientShap,
        GuidedBackprop,
        IntegratedGradients,
        LayerConductance,
        Saliency,
        ShapleyValueSampling,
    )

    m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    x = torch.randn(2, 4)
    b = torch.zeros(2, 4)
    out = []
    for A, kw in (
        (IntegratedGradients, dict(n_steps=10)),
        (Saliency, {}),
        (DeepLift, dict(baselines=b)),
        (GradientShap, dict(baselines=b)),
        (FeatureAblation, {}),
        (GuidedBackprop, {}),
        (ShapleyValueSampling, dict(n_samples=3)),
        (LRP, {}),
    ):
        torch.manual_seed(0)
        out.append(A(m).attribute(x, target=1, **kw))
    out.append(LayerConductance(m, m[0]).attribute(x, target=1, n_steps=5))
    return out


def e3nn() -> list:
    """Equivariant layers, compiled through fx."""
    from e3nn import o3

    out = [o3.spherical_harmonics([0, 1, 2], torch.randn(4, 3), True)]
    i = o3.Irreps("2x0e+1x1o")
    value = o3.Linear(i, "3x0e+2x1o")
    x = i.randn(4, -1)
    tp = o3.FullyConnectedTensorProduct(i, i, "2x0e+1x1o")
    out += train(value, lambda: value(x).square().mean())
    out += train(tp, lambda: tp(x, x).square().mean())
    out.append(i.D_from_angles(torch.tensor(0.3), torch.tensor(0.2), torch.tensor(0.1)))
    out.append(o3.wigner_3j(1, 1, 2))
    return out


def skorch() -> list:
    """A classifier of scikit-learn's kind."""
    from skorch import NeuralNetClassifier

    torch.manual_seed(0)
    X = np.random.RandomState(0).randn(40, 4).astype("float32")
    y = (X.sum(1) > 0).astype("int64")
    n = NeuralNetClassifier(
        lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(-1)),
        max_epochs=4,
        lr=0.1,
        verbose=0,
        train_split=None,
        iterator_train__shuffle=True,
    )
    n.fit(X, y)
    return [torch.tensor(n.history[:, "train_loss"]), torch.tensor(n.predict_proba(X))]


def lightning() -> list:
    """A Trainer, its checkpoints."""
    import lightning as module

    class M(module.LightningModule):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 2)
            self.losses = []

        def training_step(self, b, i):
            x, y = b
            value = F.cross_entropy(self.l(x), y)
            self.log("loss", value)
            self.losses.append(value.detach())
            return value

        def configure_optimizers(self):
            o = torch.optim.Adam(self.parameters(), 0.01)
            return ([o], [torch.optim.lr_scheduler.StepLR(o, 1)])

    module.seed_everything(0)
    m = M()
    x = torch.randn(32, 4)
    y = torch.randint(0, 2, (32,))
    d = tempfile.mkdtemp()
    t = module.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=d,
    )
    t.fit(m, torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 8, shuffle=True))
    t.save_checkpoint(d + "/a.ckpt")
    n = M.load_from_checkpoint(d + "/a.ckpt", weights_only=False)
    return [*m.losses, n.l.weight]


def tensordict() -> list:
    """Dicts of tensors, modules over them, mapped to files."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule, TensorDictSequential

    td = TensorDict({"a": torch.randn(3, 4), "b": {"c": torch.randn(3, 2)}}, [3])
    m = TensorDictSequential(
        TensorDictModule(nn.Linear(4, 2), ["a"], ["h"]), TensorDictModule(lambda h, c: h + c, ["h", ("b", "c")], ["o"])
    )
    r = m(td.clone())
    r["o"].sum().backward()
    st = torch.stack([td, td * 2])
    p = tempfile.mkdtemp()
    td.memmap(p)
    value = TensorDict.load_memmap(p)
    return [
        r["o"],
        m[0].module.weight.grad,
        st["b", "c"],
        (td + 1)["a"],
        td.reshape(-1)["a"],
        value["a"],
        torch.cat([td, td])["a"],
        torch.vmap(lambda t: t["a"] * 2)(td),
    ]


def pytorch_metric_learning() -> list:
    """Losses of embeddings, a miner."""
    from pytorch_metric_learning import losses, miners

    e = nn.Linear(4, 6)
    x = torch.randn(12, 4)
    y = torch.arange(12) // 3
    out = []
    for value in (
        losses.TripletMarginLoss(),
        losses.ContrastiveLoss(),
        losses.NTXentLoss(),
        losses.MultiSimilarityLoss(),
        losses.CircleLoss(),
        losses.SupConLoss(),
        losses.ArcFaceLoss(4, 6),
        losses.ProxyAnchorLoss(4, 6),
        losses.LiftedStructureLoss(),
        losses.SoftTripleLoss(4, 6),
    ):
        out += train(e, lambda: value(e(x), y), 2)
    mi = miners.MultiSimilarityMiner()(e(x), y)
    out += [t.float() for t in mi]
    return out


def small_optimizers() -> list:
    """Lion, AdamAtan2, an average of weights, rotary embeddings."""
    from adam_atan2_pytorch import AdamAtan2
    from ema_pytorch import EMA
    from lion_pytorch import Lion
    from rotary_embedding_torch import RotaryEmbedding

    out = []
    for o in (lambda p: Lion(p, 0.01), lambda p: AdamAtan2(p, 0.01)):
        m = nn.Linear(4, 4)
        out += train(m, lambda: m(torch.ones(2, 4)).square().mean(), 4, o)
    m = nn.Linear(2, 2)
    e = EMA(m, beta=0.9, update_after_step=0, update_every=1)
    for _ in range(3):
        m.weight.data.add_(0.1)
        e.update()
    out.append(e(torch.ones(1, 2)))
    r = RotaryEmbedding(dim=4)
    q = torch.randn(1, 2, 5, 8, requires_grad=True)
    y = r.rotate_queries_or_keys(q)
    y.square().sum().backward()
    return [*out, y, q.grad]


def accelerate() -> list:
    """A prepared loop, saved and loaded; empty weights."""
    from accelerate import Accelerator, init_empty_weights

    a = Accelerator(cpu=True)
    m = nn.Linear(4, 2)
    o = torch.optim.SGD(m.parameters(), 0.1)
    d = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randint(0, 2, (8,))), 4)
    s = torch.optim.lr_scheduler.StepLR(o, 1)
    m, o, d, s = a.prepare(m, o, d, s)
    out = []
    for x, y in d:
        with a.accumulate(m):
            value = F.cross_entropy(m(x), y)
            a.backward(value)
            a.clip_grad_norm_(m.parameters(), 1.0)
            o.step()
            s.step()
            o.zero_grad()
            out.append(a.gather(value.detach()))
    p = tempfile.mkdtemp()
    a.save_state(p)
    a.load_state(p)
    with init_empty_weights():
        e = nn.Linear(3, 3)
    assert e.weight.is_meta
    return [*out, a.unwrap_model(m).weight]


def torch_geometric() -> list:
    """Graph convolutions, and a batch of graphs."""
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool

    ei = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    x = torch.randn(4, 5)
    out = []
    for C in (GCNConv, GATConv, SAGEConv):
        m = C(5, 3)
        out += train(m, lambda: m(x, ei).square().mean())
    g = GINConv(nn.Linear(5, 3))
    out += train(g, lambda: g(x, ei).square().mean())
    b = Batch.from_data_list([Data(x=x, edge_index=ei), Data(x=x * 2, edge_index=ei)])
    m = GCNConv(5, 3)
    out.append(global_mean_pool(m(b.x, b.edge_index), b.batch))
    return out


PROGRAMS = {
    "einops": einops,
    "kornia": kornia,
    "torchmetrics": torchmetrics,
    "torchdiffeq": torchdiffeq,
    "torchsde": torchsde,
    "gpytorch": gpytorch,
    "botorch": botorch,
    "pyro": pyro,
    "captum": captum,
    "e3nn": e3nn,
    "skorch": skorch,
    "lightning": lightning,
    "tensordict": tensordict,
    "pytorch_metric_learning": pytorch_metric_learning,
    "small_optimizers": small_optimizers,
    "accelerate": accelerate,
    "torch_geometric": torch_geometric,
}
"""The programs by the package that each is about."""
