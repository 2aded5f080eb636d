# ruff: noqa: B023 (a loss is computed within its round of the loop)
"""Families of classes of the libraries, of each many members: a name is the package's, and which family."""

from __future__ import annotations

import torch
from steps import train

nn = torch.nn


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


PROGRAMS = {
    "linear_operator.operators": operators,
    "pyro.guides": guides,
    "torch_geometric.convolutions": convolutions,
    "torch_geometric.layouts": layouts,
}
"""The programs by the package that each is about, and which family."""
