"""Expressions whose outcomes are recorded from PyTorch: promotion, numbers, special values, keyword forms, indexing.

Each is evaluated with `torch` and `t` (torch.tensor); it may run a few statements before, separated by `;`.
"""

from __future__ import annotations

from typing import Any

from strategies.outcomes import attempt

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
NUMBERS = ("True", "2", "2.5", "1+2j")


def _promotion() -> list[str]:
    found = []
    for one in DTYPES:
        for other in DTYPES:
            found.append(f"torch.ones(2, dtype=torch.{one}) + torch.ones(2, dtype=torch.{other})")
            found.append(f"torch.ones(2, dtype=torch.{one}) * torch.tensor(2, dtype=torch.{other})")
        for number in NUMBERS:
            if one not in ("float16", "bfloat16") or "j" not in number:
                found.append(f"torch.ones(2, dtype=torch.{one}) + {number}")
                found.append(f"torch.ones((), dtype=torch.{one}) * {number}")
        found += [
            f"torch.ones(2, dtype=torch.{one}) / 2",
            f"torch.ones(2, dtype=torch.{one}) // 2",
            f"torch.ones(2, dtype=torch.{one}) ** 2",
            f"2 - torch.ones(2, dtype=torch.{one})",
            f"torch.ones(2, dtype=torch.{one}).sum()",
            f"torch.ones(2, dtype=torch.{one}).prod()",
            f"torch.ones(2, dtype=torch.{one}).mean()",
            f"torch.ones(2, dtype=torch.{one}).exp()",
            f"torch.ones(2, dtype=torch.{one}).sqrt_()",
            f"torch.ones(2, dtype=torch.{one}).cumsum(0)",
            f"-torch.ones(2, dtype=torch.{one})",
            f"~torch.ones(2, dtype=torch.{one})",
            f"torch.ones(2, dtype=torch.{one}).add_(1.5)",
            f"torch.ones(2, dtype=torch.{one}).mul_(1+1j)",
            f"torch.ones(2, dtype=torch.{one}).argmax()",
            f"torch.ones(2, dtype=torch.{one}).abs()",
            f"torch.ones(2, dtype=torch.{one}) @ torch.ones(2, dtype=torch.{one})",
        ]
    return found


SPECIAL = """
t([float('nan'), 1., -1.]).max()
t([float('nan'), 1., -1.]).argmax()
t([float('nan'), 1., -1.]).sort()
t([1., float('nan'), -1.]).clamp(0, 0.5)
t([1., float('nan')]).maximum(t([float('nan'), 2.]))
t([1., float('nan')]).fmax(t([float('nan'), 2.]))
t([1., 0., -1.]) / 0
t([1, 0, -1]) / 0
t([1, 0]) // 0
t([1., -1.]) // 0.
t([7, -7]) // 2
t([7., -7.]) // 2
t([7, -7]) % 3
t([7., -7.]) % -3
torch.fmod(t([7, -7]), 3)
torch.remainder(t([7., -7.]), 3)
t([2, 3]) ** -1
t([2, 3]) ** t([-1, 2])
t([2., 3.]) ** -1
0 ** t([0., 1.])
t(0.) ** 0
t([-8.]) ** (1 / 3)
torch.pow(2, t([1, 2]))
t([0.5, 1.5, 2.5, -0.5]).round()
t([1.25, 3.15]).round(decimals=1)
t([1, 2, 3]).float().std()
t([1.]).std()
t([1.]).var(unbiased=False)
t([[1., 2.], [3., 4.]]).var(dim=1, correction=0)
t([]).sum()
t([]).prod()
t([]).mean()
t([]).max()
t([]).argmax()
torch.zeros(0, 3).sum(0)
torch.zeros(0, 3).max(0)
torch.zeros(3, 0).max(0)
torch.zeros(2, 3).sum(())
torch.zeros(2, 3).sum([])
torch.zeros(2, 3).sum(dim=(0, 0))
torch.zeros(2, 3).sum(2)
torch.zeros(2, 3).sum(-3)
torch.ones(2, 3).sum(dtype=torch.int32)
torch.ones(2, 3).any(1)
torch.ones(2, 3).all()
torch.ones(2, 3, dtype=torch.uint8).all()
t([1, 2, 3]).mean()
t([1, 2, 3]).median()
t([1., 2., 3., 4.]).median()
t([3, 1, 2]).sort(descending=True)
t([3, 1, 2]).topk(2)
t([3, 1, 2]).topk(4)
t([[1, 2], [3, 4]]).flatten()
torch.arange(6).view(2, 3).t()
torch.arange(6).view(4)
torch.arange(6).view(-1, -1)
torch.arange(6).view(2, -1)
torch.arange(6).reshape(3, 2).T.view(6)
torch.arange(6).reshape(3, 2).T.reshape(6)
torch.zeros(2, 1).expand(2, 3)
torch.zeros(2, 1).expand(3, 3)
torch.zeros(2, 1).expand(-1, 4)
torch.zeros(2, 3).unsqueeze(3)
torch.zeros(2, 3).unsqueeze(-1)
torch.zeros(1, 2, 1).squeeze()
torch.zeros(1, 2, 1).squeeze(1)
torch.zeros(2, 3).transpose(0, 2)
torch.zeros(2, 3).permute(1, 0)
torch.zeros(2, 3).permute(1, 1)
torch.zeros(2, 3).permute(0)
torch.cat([t([1]), t([2.])])
torch.cat([torch.zeros(0), torch.zeros(2, 3)])
torch.cat([torch.zeros(2, 3), torch.zeros(3, 3)], 1)
torch.cat([])
torch.stack([t([1]), t([2, 3])])
torch.zeros(2, 3) + torch.zeros(4)
torch.zeros(2, 3) @ torch.zeros(4, 5)
torch.mm(torch.zeros(2, 3), torch.zeros(4, 5))
torch.zeros(3) @ torch.zeros(5)
torch.bmm(torch.zeros(2, 3, 4), torch.zeros(2, 5, 6))
torch.zeros(2, 3).int() @ torch.zeros(3, 2)
torch.arange(0, 1, 0.3)
torch.arange(5, 0, -2)
torch.arange(0, 5, -1)
torch.arange(3.)
torch.linspace(0, 1, 5)
torch.full((2,), True)
torch.full((2,), 1.5)
torch.full((2,), 3)
torch.eye(2, 3)
torch.tril(torch.ones(3, 3), -1)
torch.zeros(2, -1)
torch.where(t([True, False]), 1, 2.5)
torch.where(t([True, False]), t([1, 2]), t(0.5))
torch.where(t([1, 0]), t([1, 2]), t([3, 4]))
torch.clamp(t([1, 5]), 2.5)
torch.clamp(t([1., 5.]), max=2)
torch.clamp(t([1., 5.]))
torch.lerp(t([0.]), t([1.]), 0.25)
torch.addcmul(t([1.]), t([2.]), t([3.]), value=0.5)
torch.addmm(torch.ones(2), torch.ones(2, 3), torch.ones(3, 2), beta=2, alpha=0.5)
torch.nn.functional.softmax(t([1., 2., 3.]), 0)
torch.softmax(t([1, 2, 3]), 0)
torch.softmax(t([1, 2, 3]), 0, dtype=torch.float32)
torch.logsumexp(t([1000., 1000.]), 0)
torch.sigmoid(t([-100., 0., 100.]))
torch.sigmoid(t([1, 2]))
torch.log1p(t([-1., 0.]))
torch.sqrt(t([-1.]))
torch.erf(t([0.5]))
torch.lgamma(t([0.5, 5.]))
torch.isclose(t([1.]), t([1. + 1e-9]))
torch.equal(t([1, 2]), t([1, 2]))
torch.allclose(t([1.]), t([1.1]))
torch.bitwise_and(t([5]), t([3]))
torch.bitwise_and(t([5.]), t([3.]))
t([1, 2]) << 1
t([True]) & t([False])
t([True]) - t([True])
-t([True])
t([1, 2]).bool()
t([1.7, -1.7]).int()
t([300.]).to(torch.uint8)
t([1, 2]).char()
t([1, 2]) == t([1., 3.])
t([1, 2]) == 1
t([1+1j]) < t([1+0j])
torch.gather(torch.arange(6).view(2, 3), 1, t([[0, 2], [1, 1]]))
torch.gather(torch.arange(6).view(2, 3), 1, t([[0., 2.]]))
torch.zeros(2, 3).scatter(1, t([[0], [2]]), 5.)
torch.zeros(2, 3).scatter_add(1, t([[0, 0], [2, 2]]), torch.ones(2, 2))
torch.zeros(3).index_add(0, t([0, 0, 2]), t([1., 2., 3.]))
torch.arange(6).view(2, 3).index_select(1, t([2, 0]))
torch.arange(6).view(2, 3).index_select(1, t([3]))
torch.arange(6).view(2, 3).take(t([5, 0]))
torch.arange(6).masked_select(torch.arange(6) > 3)
torch.arange(4.).masked_fill(torch.arange(4) > 1, -1)
torch.arange(4).masked_fill(t([True, False, True, False]), 1.5)
t([0, 1, 0, 2]).nonzero()
t([[0, 1], [2, 0]]).nonzero(as_tuple=True)
t([3, 1, 3]).unique(return_counts=True)
t([1, 1, 2]).unique_consecutive()
t([1, 2, 2]).bincount()
torch.arange(6).view(2, 3)[1]
torch.arange(6).view(2, 3)[:, 1:]
torch.arange(6).view(2, 3)[..., -1]
torch.arange(6).view(2, 3)[None, 1]
torch.arange(6).view(2, 3)[t([1, 0])]
torch.arange(6).view(2, 3)[[1, 0], [2, 0]]
torch.arange(6).view(2, 3)[:, t([True, False, True])]
torch.arange(6).view(2, 3)[t([True, False])]
torch.arange(6).view(2, 3)[2]
torch.arange(6).view(2, 3)[0, 0, 0]
torch.arange(6).view(2, 3)[::2]
torch.arange(6).view(2, 3)[::-1]
torch.arange(6).view(2, 3)[t(1)]
torch.arange(6).view(2, 3)[True]
torch.arange(6).view(2, 3)[False]
torch.arange(24).view(2, 3, 4)[:, t([0, 2]), 1:3]
torch.arange(24).view(2, 3, 4)[t([0, 1]), :, t([0, 1])]
torch.arange(6).view(2, 3)['a']
torch.arange(6).view(2, 3)[1.0]
x = torch.zeros(2, 3); x[0] = 1; x
x = torch.zeros(2, 3); x[:, t([0, 2])] = t([5., 6.]); x
x = torch.zeros(2, 3); x[x == 0] = 7; x
x = torch.zeros(2, 3); x[0] = t([1., 2.]); x
x = torch.zeros(2, 3); x[..., 1] += 2; x
x = torch.zeros(3, dtype=torch.int64); x[0] = 1.9; x
x = torch.zeros(3); x[[0, 0]] = t([1., 2.]); x
x = t([1, 2]); x += 1.5; x
x = t([1, 2]); x /= 2; x
x = t([1., 2.]); x += t([1, 2]); x
x = torch.zeros(3); x += torch.zeros(2, 3); x
x = torch.zeros(1).expand(3); x += 1; x
x = torch.arange(4); x[1:] += x[:-1]; x
torch.add(t([1]), t([2]), alpha=1.5)
torch.add(t([1.]), t([2.]), alpha=2)
torch.add(t([True]), t([True]), alpha=True)
torch.sub(t([1.]), 2, alpha=3)
torch.rsub(t([1.]), 2)
torch.add(t([1]), t([1]), out=torch.zeros(1))
torch.add(t([1.]), t([1.]), out=torch.zeros(1, dtype=torch.int64))
torch.add(1, 2)
torch.add(t([1]), 'a')
torch.add(t([1]))
torch.sum()
torch.zeros(2).add(foo=1)
torch.ones(2, 3).sum(axis=0)
torch.ones(2, 3).sum(0, keepdims=True)
torch.concat([t([1]), t([2])], axis=0)
torch.norm(t([3., 4.]))
torch.norm(t([[3., 4.]]), dim=1)
torch.linalg.vector_norm(t([3., 4.]), 1)
torch.dist(t([1.]), t([4.]))
torch.cross(t([1., 0., 0.]), t([0., 1., 0.]), dim=0)
torch.outer(t([1., 2.]), t([3., 4.]))
torch.einsum('ij,jk->ik', torch.ones(2, 3), torch.ones(3, 2))
torch.tensordot(torch.ones(2, 3), torch.ones(3, 2), dims=1)
torch.diag(t([1, 2]))
torch.trace(t([[1, 2], [3, 4]]))
torch.triu(torch.ones(2, 3), 1)
torch.roll(torch.arange(4), 1)
torch.flip(torch.arange(4), [0])
torch.repeat_interleave(t([1, 2]), 2)
torch.repeat_interleave(t([1, 2]), t([1, 2]))
t([1, 2]).repeat(2, 2)
torch.tile(t([1, 2]), (2,))
torch.meshgrid(t([1, 2]), t([3, 4, 5]), indexing='ij')
torch.cumsum(t([1, 2, 3]), 0)
torch.cumprod(t([1., 2., 3.]), 0)
torch.cummax(t([1, 3, 2]), 0)
torch.diff(t([1, 4, 9]))
torch.searchsorted(t([1, 3, 5]), t([2, 5]))
torch.bucketize(t([2, 5]), t([1, 3, 5]), right=True)
torch.histc(t([1., 2., 1.]), 4, 0, 3)
torch.kthvalue(t([3, 1, 2]), 2)
torch.mode(t([1, 2, 2]))
torch.quantile(t([1., 2., 3., 4.]), 0.5)
torch.split(torch.arange(5), 2)
torch.chunk(torch.arange(5), 3)
torch.tensor_split(torch.arange(5), 3)
torch.unbind(torch.arange(4).view(2, 2))
torch.narrow(torch.arange(5), 0, 1, 3)
torch.narrow(torch.arange(5), 0, 4, 3)
torch.select(torch.arange(6).view(2, 3), 1, 2)
torch.movedim(torch.zeros(2, 3, 4), 0, -1)
torch.as_strided(torch.arange(6), (2, 2), (3, 1), 1)
torch.complex(t([1.]), t([2.]))
torch.view_as_real(t([1 + 2j]))
torch.real(t([1 + 2j]))
torch.abs(t([3 + 4j]))
torch.angle(t([1j]))
torch.conj(t([1 + 2j])).resolve_conj()
torch.result_type(t([1]), 1.5)
torch.result_type(t([1]), t(1.5))
torch.promote_types(torch.int8, torch.uint8)
torch.can_cast(torch.float32, torch.int64)
torch.finfo(torch.bfloat16).eps
torch.iinfo(torch.int8).max
t([[1, 2], [3]])
t([1, 'a'])
t([1, 2.5, True])
t([1, 2j])
t(3).item()
t([1, 2]).item()
t([1]).item()
bool(t([1, 2]))
bool(t([]))
len(t(1))
float(t([1.5]))
int(t([1, 2]))
t([1, 2]).tolist()
list(t([1, 2]))
t([1, 2, 3]).size(1)
t([1, 2, 3]).stride()
torch.zeros(2, 3, dtype=torch.float16).element_size()
torch.zeros(2, 3).numel()
torch.zeros(2, 3).to(memory_format=torch.channels_last)
torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last)
torch.zeros(1, 2, 3, 4).contiguous(memory_format=torch.channels_last) + 1
torch.nn.functional.relu(t([-1, 1]))
torch.nn.functional.gelu(t([-1., 1.]))
torch.nn.functional.gelu(t([-1., 1.]), approximate='tanh')
torch.nn.functional.silu(t([-1., 1.]))
torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))
torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 2))
torch.nn.functional.layer_norm(t([[1., 2., 3.]]), (3,))
torch.nn.functional.layer_norm(t([[1., 2., 3.]]), (2,))
torch.nn.functional.embedding(t([0, 2]), torch.arange(6.).view(3, 2))
torch.nn.functional.embedding(t([3]), torch.arange(6.).view(3, 2))
torch.nn.functional.one_hot(t([0, 2]))
torch.nn.functional.one_hot(t([0, 2]), 2)
torch.nn.functional.pad(t([1, 2]), (1, 2), value=9)
torch.nn.functional.cross_entropy(t([[1., 2.]]), t([1]))
torch.nn.functional.cross_entropy(t([[1., 2.]]), t([2]))
torch.nn.functional.mse_loss(t([1., 2.]), t([0., 0.]))
torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2), stride=2)
torch.nn.functional.conv2d(torch.ones(1, 2, 4, 4), torch.ones(1, 1, 2, 2))
torch.nn.functional.max_pool2d(torch.arange(16.).view(1, 1, 4, 4), 2)
torch.nn.functional.avg_pool2d(torch.arange(16.).view(1, 4, 4), 2)
torch.nn.functional.interpolate(torch.arange(4.).view(1, 1, 2, 2), scale_factor=2)
torch.nn.functional.scaled_dot_product_attention(torch.ones(1, 2, 4), torch.ones(1, 2, 4), torch.ones(1, 2, 4), is_causal=True)
""".strip().split("\n")

EXPRESSIONS = [*_promotion(), *SPECIAL]


def evaluate(text: str, torch: Any) -> Any:
    """The outcome of an expression, perhaps after statements, with `torch` as the library."""
    *statements, expression = text.split("; ")
    space: dict[str, Any] = {"torch": torch, "t": torch.tensor}

    def run() -> Any:
        for statement in statements:
            exec(statement, space)
        return eval(expression, space)

    return attempt(run)
