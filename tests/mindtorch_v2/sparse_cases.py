"""Calls of sparse tensors, as text, for test_sparse.py and for recording what PyTorch says of them (tests/record_sparse.py)."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any


class Names:
    """What the calls may name, of one torch."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.copy, self.pickle = copy, pickle
        self.S, self.C, self.T = torch.sparse_coo_tensor, torch.sparse_csr_tensor, torch.tensor
        self.D = torch.arange(9.0).reshape(3, 3) + 1

    def A(self, grad: bool = False) -> Any:
        """Sorted coordinates that nobody has called sorted."""
        return self.S([[0, 0, 1, 2], [1, 2, 0, 1]], self.T([1.0, 2, 3, 4]), (3, 3), requires_grad=grad)

    def U(self, grad: bool = False) -> Any:
        """Coordinates in no order, of which one stands twice."""
        return self.S([[0, 2, 0, 0], [1, 1, 1, 0]], self.T([1.0, 2, 3, 4]), (3, 3), requires_grad=grad)

    def H(self, grad: bool = False) -> Any:
        """One sparse dimension and a dense one."""
        return self.S([[2, 0, 2]], self.T([[1.0, 2], [3, 4], [5, 6]]), (3, 2), requires_grad=grad)

    def R(self, grad: bool = False) -> Any:
        """Rows."""
        return self.C([0, 2, 3, 4], [1, 2, 0, 1], self.T([1.0, 2, 3, 4]), (3, 3), requires_grad=grad)

    def d(self) -> Any:
        """A dense leaf."""
        return self.D.clone().requires_grad_()

    def g(self, function: Any, *leaves: Any) -> tuple:
        """A result, and the gradients of a weighted sum of its elements."""
        result = function(*leaves)
        dense = result.to_dense() if result.layout != self.torch.strided else result
        weights = self.torch.arange(1.0, dense.numel() + 1).reshape(dense.shape)
        (dense * weights).sum().backward()
        return result, [leaf.grad for leaf in leaves]

    def acc(self, kinds: str, twice: bool = False) -> Any:
        """What a leaf has after gradients of these kinds (sparse, unsorted, dense) arrived, in one pass or in several."""
        torch, names = self.torch, self

        class Given(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, kind: str) -> Any:
                ctx.kind = kind
                return x.clone()

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return {"s": names.A, "u": names.U}.get(ctx.kind, lambda: grad)(), None

        leaf = torch.zeros(3, 3, requires_grad=True)
        if twice:
            for kind in kinds:
                Given.apply(leaf, kind).sum().backward()
        else:
            sum(Given.apply(leaf, kind) for kind in kinds).sum().backward()
        return leaf.grad

    def emb(self, optimizer: Any = None, mode: str | None = None, pad: int | None = None, steps: int = 1) -> tuple:
        """The gradient and the weight of a table after some steps."""
        torch = self.torch
        torch.manual_seed(0)
        if mode is None:
            module = torch.nn.Embedding(6, 2, sparse=True, padding_idx=pad)
        else:
            module = torch.nn.EmbeddingBag(6, 2, sparse=True, mode=mode, padding_idx=pad)
        made = optimizer(list(module.parameters())) if optimizer else None
        for _ in range(steps):
            if made is not None:
                made.zero_grad()
            out = module(self.T([[1, 2, 1], [5, 1, 0]]))
            (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
            if made is not None:
                made.step()
        return module.weight.grad, module.weight.detach()

    def rt(self, value: Any, **options: Any) -> Any:
        """What is read of what was saved."""
        file = io.BytesIO()
        self.torch.save(value, file)
        file.seek(0)
        return self.torch.load(file, **options)


def outcome(names: Names, call: str) -> Any:
    """How the result prints, or the class and the beginning of the message of an error."""
    space = {name: getattr(names, name) for name in dir(names) if not name.startswith("__")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(eval(call, space))
        except Exception as error:  # noqa: BLE001 (which one is what is asked)
            return [type(error).__name__, str(error).partition(" This could be")[0]]


CASES = """
S([[0,1]],[1.,2.])
S([[0,1]],[1,2],(3,))
S([[0,1]],[1.,2.],(3,4))
S([[0,1]],[1.,2.,3.],(3,))
S([0,1],[1.,2.],(3,))
S([0,1],[1.,2.])
S([[0,1]],3.,(3,))
S([[0,-1]],[1.,2.])
S([[0,-1]],[1.,2.],(3,),check_invariants=True)
S([[0,5]],[1.,2.],(3,),check_invariants=True)
S([[0,1]],[1.,2.],(3,4),check_invariants=True)
S([[0,1]],[1.,2.,3.],(3,),check_invariants=True)
S([[0,1]],[[1.,2.],[3.,4]],(3,5),check_invariants=True)
S([[1,0]],[1.,2.],(3,),is_coalesced=True,check_invariants=True)
S((2,3))
S(2,3)
S((2,3),dtype=torch.int64)
S(torch.empty(0,2,dtype=torch.long),[1.,2.],())
S(torch.empty(2,0,dtype=torch.long),torch.empty(0))
S([[0.5,1]],[1.,2.])
S([[0,1]],[1.,2.],requires_grad=True)
S([[0,1]],T([1.,2.],requires_grad=True))
S([[0,1]],[1.,2.],dtype=torch.float16)
S([[0,1]],[1.,2.],(-1,))
S([[0,1]],[1,2],requires_grad=True)
S([[0,1]],[1.,2.],device='meta')
torch.empty(2,3,layout=torch.sparse_coo,device='meta')
torch.zeros(2,3,layout=torch.sparse_coo)
torch.zeros(2,3,layout=torch.sparse_csr)
torch.zeros_like(S([[0,1]],[1.,2.]))
torch.zeros_like(S([[0,1]],[1.,2.])).is_coalesced()
torch.zeros_like(S([[0,1]],[1.,2.]),layout=torch.strided)
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.])
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.],(2,3))
torch.sparse_csr_tensor([1,1,2],[0,1],[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,1,1],[0,1],[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0,5],[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,2,2],[1,0],[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,2,2],[1,1],[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,1],[0,1],[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.,3],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.],(2,),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.],(2,3,4),check_invariants=True)
torch.sparse_csr_tensor(T([0.,1,2]),[0,1],[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor(T([0,1,2],dtype=torch.int32),T([0,1],dtype=torch.int64),[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor(T([0,1,2],dtype=torch.int32),T([0,1],dtype=torch.int32),[1.,2.],(2,3),check_invariants=True)
torch.sparse_csr_tensor([0,1,2],[0,1],[1.,2.],(2,3)).crow_indices().dtype
torch.sparse_compressed_tensor([0,1,2],[0,1],[1.,2.],(2,3),layout=torch.sparse_csr)
torch.sparse_compressed_tensor([0,1,2],[0,1],[1.,2.],(2,3))
torch.sparse_compressed_tensor([0,1,2],[0,1],[1.,2.],(2,3),layout=torch.sparse_coo)
torch.sparse_csr_tensor([[0,1,2],[0,1,2]],[[0,1],[1,0]],[[1.,2.],[3,4]],(2,2,3)).to_dense()
S([[0,1]],[1.,2.]).sparse_resize_((1,),1,0)
S([[0,1]],[1.,2.]).sparse_resize_((5,),1,0)
S([[0,1]],[1.,2.]).sparse_resize_((5,3),1,0)
S([[0,1]],[1.,2.]).resize_(5)
S([[0,1]],[1.,2.]).resize_as_(S([[0,1]],[1.,2.],(5,)))
S([[0,1]],[1.,2.]).neg_()
S([[0,0]],[1.,2.]).neg()
S([[0,0]],[1.,2.]).neg_()
S([[0,0]],[1.,2.]).relu_()
S([[0,0]],[1.,2.]).abs_()
S([[0,0]],[1.,2.]).mul_(2)
S([[0,0]],[1.,2.])*2
S([[0,0]],[1.,2.])/2
S([[0,0]],[1.,2.])//2
S([[0,0]],[1.,2.])**2
S([[0,0]],[1.,2.])**0
2/S([[0,0]],[1.,2.])
S([[0,1]],[1.,2.])*S([[0,0]],[1.,2.],(2,))
S([[0,1]],[1.,2.])+S([[0,0]],[1.,2.],(2,))
(S([[0,1]],[1.,2.]).coalesce()+S([[0,1]],[1.,2.],(2,)).coalesce()).is_coalesced()
(S([[0,1]],[1.,2.])+S([[0,1]],[1.,2.],(2,)))
S([[0,1]],[1.,2.])-S([[0,0]],[1.,2.],(2,))
S([[0,1]],[1.,2.])+torch.ones(2)
torch.ones(2)+S([[0,1]],[1.,2.])
torch.ones(2)-S([[0,1]],[1.,2.])
S([[0,1]],[1.,2.])-torch.ones(2)
torch.ones(1)+S([[0,1]],[1.,2.])
torch.ones(3)+S([[0,1]],[1.,2.])
torch.ones(2,2)+S([[0,1]],[1.,2.])
1+S([[0,1]],[1.,2.])
torch.ones(2)*S([[0,1]],[1.,2.])
S([[0,1]],[1.,2.])*torch.ones(1)
S([[0,1]],[1.,2.])*torch.ones(3,2)
S([[0,1]],[1.,2.])*torch.ones(3)
S([[0,1]],[1.,2.])*torch.tensor(2)
S([[0,1]],[1,2])*2.5
S([[0,1]],[1,2])/2
S([[0,1]],[1,2])+S([[0,1]],[1.,2.])
S([[0,1]],[1,2]).add_(S([[0,1]],[1.,2.]))
S([[0,1]],[1.,2])/torch.ones(2)
S([[0,1]],[1.,2])/S([[0,1]],[1.,2])
S([[0,1]],[1.,2])+S([[0,1]],[1.,2],(3,))
S([[0,1]],[1.,2])*S([[0,1]],[1.,2],(3,))
S([[0,1]],[1.,2]).add_(torch.ones(2))
S([[0,1]],[1.,2]).copy_(torch.ones(2))
torch.ones(2).copy_(S([[0,1]],[1.,2]))
S([[0,1]],[1.,2]).copy_(S([[0,1]],[1.,2],(3,)))
S([[0,1]],[1.,2]).zero_()
S([[0,1]],[1.,2])[torch.tensor([1,0])]
S([[0,1]],[1.,2])[None]
S([[0,1]],[1.,2]).index_select(0,torch.tensor([1,0,1]))
S([[0,1]],[1.,2]).exp()
S([[0,1]],[1.,2]).max()
S([[0,1]],[1.,2]).contiguous()
torch.allclose(S([[0,1]],[1.,2]),S([[0,1]],[1.,2]))
S([[0,1]],[1.,2]).isclose(S([[0,1]],[1.,2]))
S([[0,1]],[1.,2]).norm()
S([[0,1]],[1.,2]).norm(1,dim=0)
S([[0,1]],[1.,2]).any()
S([[0,1]],[1.,2]).cumsum(0)
torch.stack([S([[0,1]],[1.,2]),S([[0,1]],[1.,2])])
torch.cat([S([[0,1]],[1.,2]),torch.ones(2)])
torch.cat([S([[0,1]],[1.,2]),S([[0,1]],[1.,2],(3,))])
S([[0,1]],[1.,2]).to_sparse()
torch.ones(2,3).to_sparse(1)
torch.ones(2,3).to_sparse(0)
torch.ones(2,3).to_sparse(3)
torch.tensor(3.).to_sparse()
torch.ones(2,3,4).to_sparse(dense_dim=1)
torch.ones(2,3).to_sparse(layout=torch.sparse_csr)
torch.ones(2,3,2).to_sparse_csr()
S([[0,1]],[1.,2]).to_sparse_csr()
torch.ones(2,3).to_sparse(layout=torch.strided)
S([[0,1]],[1.,2]).to_dense(dtype=torch.float64)
torch.eye(2).to_sparse().to_dense(dtype=torch.float64)
torch.eye(2).to_dense(dtype=torch.float64)
S([[0,1]],[True,False])
S([[0,0]],[True,False]).coalesce()
S([[0,0]],[1.5,2],dtype=torch.float16).coalesce()
S([[0,0]],[1.5,2],dtype=torch.bfloat16).coalesce().to_dense()
S([[0,0],[1,1]],[[1.5,2],[1,2]]).coalesce()
S([[0,0],[1,1]],[[1.5,2],[1,2]]).transpose(0,2)
S([[0,0],[1,1]],[[1.5,2],[1,2]]).transpose(0,1)
S([[0,0],[1,1]],[[1.5,2],[1,2]]).t()
S([[0,1]],[1.,2]).t()
S([[0,1]],[1.,2]).sum(0)
S([[0,0],[1,1]],[[1.5,2],[1,2]]).sum((0,1))
S([[0,0],[1,1]],[[1.5,2],[1,2]]).sum(2)
S([[0,0],[1,1]],[[1.5,2],[1,2]]).sum(0,keepdim=True)
S([[0,1]],[1,2]).sum(0)
S([[0,0],[1,1]],[1,2]).sum(0)
torch.sparse.sum(S([[0,0],[1,1]],[1,2]),0)
torch.sparse.sum(S([[0,0],[1,1]],[1,2]),(0,1))
torch.sparse.sum(S([[0,0],[1,1]],[1.,2]))
torch.sparse.sum(S([[0,0],[1,1]],[1.,2]),0,dtype=torch.float64)
torch.sparse.softmax(S([[0,0],[0,1]],[1.,2]),1)
torch.sparse.log_softmax(S([[0,0],[0,1]],[1.,2]),1)
torch.sparse.softmax(S([[0,0],[0,1]],[1.,2]),1,dtype=torch.float64)
S([[0,1]],[1.,2]).type()
S([[0,1]],[1.,2]).is_contiguous()
S([[0,1]],[1.,2]).untyped_storage()
S([[0,1]],[1.,2]).to('meta')
S([[0,1]],[1.,2]).to(torch.float64,copy=True)
S([[0,1]],[1.,2]).int()
S([[0,1]],[1.,2]).bool()
S([[0,1]],[1.,2]).type(torch.float64)
torch.is_same_size(S([[0,1]],[1.,2]),S([[0,1]],[1.,2]))
S([[0,1]],[1.,2])._coalesced_(True)
S([[0,1]],[1.,2]).sparse_mask(S([[0]],[1.],(2,)))
torch.ones(2).sparse_mask(S([[0]],[1.],(2,)))
torch.ones(2).sparse_mask(S([[0]],[1.],(3,)))
torch.ones(2).sparse_mask(torch.ones(2))
torch.result_type(S([[0,1]],[1.,2]),1)
S([[0,1]],[1.,2]).requires_grad_()
S([[0,1]],[1.,2]).data
S([[0,1]],[1.,2]).new_zeros(3)
S([[0,1]],[1.,2]).new_empty((2,3))
S([[0,1]],[1.,2]).new_tensor([1.])
S([[0,1]],[1.,2]).layout
S([[0,1]],[1.,2],pin_memory=False)
torch.as_tensor(S([[0,1]],[1.,2]))
torch.tensor(S([[0,1]],[1.,2]))
S([[0,1]],[1.,2]).is_nonzero()
S([[0]],[1.]).item()
S([[0,1]],[1.,2]).unbind()
S([[0,1]],[1.,2]).expand(3,2)
S([[0,1]],[1.,2]).dot(torch.ones(2))
S([[0,1]],[1.,2]).unsqueeze(1)
S([[0,1]],[1.,2]).isnan()
S([[0,1]],[1.,2]).signbit()
S([[0,1]],[1.,2]).nan_to_num()
S([[0,1]],[1,2]).sqrt()
S([[0,1]],[1,2]).sin()
torch.square(S([[0,1]],[1.,2]))
torch.nn.functional.relu(S([[0,1]],[1.,2]))
torch.nn.functional.linear(torch.ones(2),S([[0,1],[0,1]],[1.,2]))
torch.nn.functional.linear(S([[0,1],[0,1]],[1.,2]),torch.ones(2,2))
A()@D
D@A()
A()@D[0]
A()@A()
(A()@A()).is_coalesced()
U()@D
U()@U()
R()@D
R()@D[0]
R()@R()
D@R()
torch.mm(A(),D)
torch.sparse.mm(A(),D)
torch.sparse.mm(A(),A())
torch.sparse.mm(D,A())
torch.sparse.mm(R(),D)
torch.sparse.mm(R(),R())
torch.sparse.mm(D,D)
torch.sparse.addmm(D,A(),D,beta=2,alpha=3)
torch.addmm(D,A(),D,beta=2,alpha=3)
torch.addmm(D,R(),D,beta=2,alpha=3)
torch.addmm(A(),A(),D)
torch.addmm(A(),A(),A())
torch.mm(A(),D.double())
torch.mm(A(),D[:2])
torch.mv(A(),D)
torch.mv(A(),D[0,:2])
torch.matmul(D[0],A())
torch.bmm(torch.stack([A(),U()]),torch.stack([D,D]))
torch.smm(A(),D)
torch.sspaddmm(A(),A(),D,beta=2)
torch.hspmm(A(),D)
A().half()@D.half()
A().to(torch.bfloat16)@D.to(torch.bfloat16)
A().int()@D.int()
A().to(torch.complex64)@D.to(torch.complex64)
g(lambda a,b: torch.sparse.mm(a,b),*both())
g(lambda a,b: torch.mm(a,b),*both())
g(lambda a,b: a@b,*both())
g(lambda a: a.to_dense(),A(True))
g(lambda a: a.to_dense(),U(True))
g(lambda a: a.to_dense(masked_grad=False),A(True))
g(lambda a: a.coalesce(),U(True))
g(lambda a: a.coalesce().values(),U(True))
g(lambda a: a.t(),A(True))
g(lambda a: a+a,A(True))
g(lambda a: a*2,A(True))
g(lambda a: a/2,A(True))
g(lambda a: -a,A(True))
g(lambda a: a*a,A(True))
g(lambda a,b: a*b,*both())
g(lambda a,b: b+a,*both())
g(lambda a,b: b-a,*both())
g(lambda a: torch.sparse.sum(a),A(True))
g(lambda a: torch.sparse.sum(a,0),A(True))
g(lambda a: torch.sparse.sum(a,1),U(True))
g(lambda a: torch.sparse.sum(a,[0,1]),A(True))
g(lambda a: torch.sparse.sum(a,1),H(True))
g(lambda a: torch.sparse.sum(a,0),H(True))
g(lambda a: a.sum(),A(True))
g(lambda a: a.sum(0),A(True))
g(lambda a: torch.sparse.softmax(a,1),A(True))
g(lambda a: torch.sparse.log_softmax(a,0),A(True))
g(lambda a: torch.sparse.softmax(a,1),H(True))
g(lambda a: torch.sparse.softmax(a,0),H(True))
g(lambda a: a.relu(),A(True))
g(lambda a: a.abs(),A(True))
g(lambda a: a.sqrt(),A(True))
g(lambda a: a.clone(),A(True))
g(lambda a: a.double(),A(True))
g(lambda a: a.select(0,0),A(True))
g(lambda v: S([[0,2,0],[1,1,1]],v,(3,3)),T([1.,2,3],requires_grad=True))
g(lambda v: S([[0,1,2],[1,1,1]],v,(3,3)).coalesce(),T([1.,2,3],requires_grad=True))
g(lambda v: torch.sparse.mm(S([[0,1,2],[1,1,1]],v,(3,3)),D),T([1.,2,3],requires_grad=True))
g(lambda v: C([0,1,2,3],[1,1,1],v,(3,3)),T([1.,2,3],requires_grad=True))
g(lambda v: torch.sparse.mm(C([0,1,2,3],[1,1,1],v,(3,3)),D),T([1.,2,3],requires_grad=True))
g(lambda v: v.to_sparse(),d())
g(lambda v: v.to_sparse_csr(),d())
g(lambda v: v.to_sparse(1),d())
g(lambda v: v.sparse_mask(A()),d())
g(lambda a: a.to_dense(),R(True))
g(lambda a: torch.sparse.mm(a,D),R(True))
g(lambda a: a.values(),R(True))
g(lambda a: a*2,R(True))
g(lambda a,b: torch.sparse.sampled_addmm(a,b,D,beta=2.,alpha=.5),R(True),d())
acc('ss')
acc('us')
acc('sd')
acc('ds')
acc('ss',True)
acc('uu',True)
acc('sd',True)
acc('ds',True)
acc('s').is_coalesced()
emb()
emb(pad=1)
emb(mode='sum')
emb(mode='mean')
emb(mode='max')
emb(lambda p: torch.optim.SGD(p,lr=.1),steps=3)
emb(lambda p: torch.optim.SGD(p,lr=.1,momentum=.9),steps=3)
emb(lambda p: torch.optim.SGD(p,lr=.1,weight_decay=.9),steps=3)
emb(lambda p: torch.optim.SparseAdam(list(p),lr=.1),steps=3)
emb(lambda p: torch.optim.SparseAdam(list(p),lr=.1,maximize=True),steps=3)
emb(lambda p: torch.optim.Adagrad(p,lr=.1),steps=3)
emb(lambda p: torch.optim.Adagrad(p,lr=.1,lr_decay=.1),steps=3)
emb(lambda p: torch.optim.Adagrad(p,lr=.1,weight_decay=.1),steps=3)
emb(lambda p: torch.optim.Adam(p,lr=.1))
emb(lambda p: torch.optim.AdamW(p,lr=.1))
emb(lambda p: torch.optim.RMSprop(p,lr=.1))
torch.nn.functional.embedding(T([0,1]),d(),sparse=True)
torch.nn.functional.embedding(T([0,1]),d(),sparse=True,scale_grad_by_freq=True).sum().backward()
copy.deepcopy(A(True))
copy.copy(A())
pickle.loads(pickle.dumps(A()))
rt(A())
rt(U()).is_coalesced()
rt(A().coalesce()).is_coalesced()
rt(R())
rt({'a':A(),'b':H()},weights_only=True)
rt(torch.nn.Parameter(A()))
rt(A(),map_location='meta')
A().to_sparse_csr().to_sparse_coo()
A().coalesce().indices()
A().coalesce().values()
R().values()
R().crow_indices(), R().col_indices(), R()._nnz(), R().sparse_dim(), R().dense_dim(), R().layout, R().is_sparse_csr, R().is_sparse
H().coalesce()
H().to_dense()
H().sparse_dim(), H().dense_dim(), H()._dimI(), H()._dimV()
torch.sparse.sum(H(),1)
H().sum(1)
U().sum(1)
torch.sparse.sum(U(),1)
torch.sparse.sum(A().int(),1)
A().int().sum(1)
A().bool().sum(1)
R().sum(1,keepdim=True)
R().sum(0,keepdim=True)
R().sum((0,1),keepdim=True)
R().sum()
R()+R()
R()*R()
R()*D
R()*2
R()+D
D+R()
R().sin()
R().clone()
R().to(torch.float64)
R().half()
R().zero_()
R().copy_(R()*2)
R().mul_(2)
R().add_(R())
R().relu_()
R().neg()
R()[0]
R()[0,1]
R().unbind()
torch.zeros_like(R())
torch.empty_like(R()).layout
R().detach()
R().requires_grad_()
R().to_dense()
R().to_sparse()
R().to_sparse(2)
R().to_sparse(layout=torch.sparse_coo)
R().sparse_mask(R())
D.sparse_mask(R())
R().sum(0)
A()[0]
A()[0,1]
A()[:,1]
A()[...,1]
A()[0][1]
A()[-1]
A()[5]
A().index_select(1,T([2,0,0]))
A().transpose(0,1)
A().permute(1,0)
A().T
A().mT
H().transpose(0,1)
H().unsqueeze(2)
A().unsqueeze(-1)
torch.cat([A(),U()],1)
torch.cat([H(),H()],1)
torch.stack([A(),U()],1)
A().to_dense().equal(U().to_dense())
A().requires_grad_(True).detach().requires_grad
A(True)@D
A(True).detach_()
A(True).data
A(True).add_(A())
A(True).mul_(2)
A().add_(U())
A().add_(A(),alpha=2)
A().sub_(U())
A().mul_(A())
A().mul_(D)
A().div_(2)
A().zero_()
D.clone().add_(A())
D.clone().add_(U(),alpha=-1)
D.clone().sub_(U())
D.clone().mul_(A())
A().copy_(U())
A().copy_(U().double())
torch.add(A(),U(),out=S((3,3)))
torch.mm(A(),D,out=torch.empty(3,3))
torch.mul(A(),U(),out=S((3,3)))
torch.add(D,A(),out=torch.empty(3,3))
torch.neg(A(),out=S((3,3)))
A().sin_()
U().sin_()
A().norm(1), A().norm(float('inf')), A().norm()
A()**2
A().pow(0.5)
A().isnan().to_dense()
A().sgn(), A().trunc()
A().nan_to_num_()
A().any()
torch.is_tensor(A()), torch.is_floating_point(A()), A().is_signed(), A().device, A().dtype
torch.sparse.spdiags(torch.arange(9).reshape(3,3),T([0,-1,2]),(3,3))
torch.sparse.spdiags(torch.ones(2,3),T([0,0]),(3,3))
torch.ones(3).to_sparse().to_sparse_csr()
torch.eye(3).to_sparse().to_sparse_csr().to_dense()
A().new(2,3)
A().new(T([[0],[1]]),T([1.]),(3,3))
torch.sparse.FloatTensor(T([[0],[1]]),T([1.]),torch.Size((3,3)))
isinstance(A(),torch.sparse.FloatTensor), isinstance(D,torch.sparse.FloatTensor), isinstance(A(),torch.FloatTensor)
S([[0]],[1.],(1,)).item()
float(S([[0]],[1.],(1,)))
A().to('cpu')
A().to(torch.float32)
A().to(D)
torch.empty(0).to_sparse()
torch.zeros(3,3).to_sparse()
torch.zeros(0,3).to_sparse()
S(torch.empty(1,0,dtype=torch.long),torch.empty(0,2),(3,2))
torch.zeros(3,3,layout=torch.sparse_coo).add_(A())
A().sparse_resize_and_clear_((4,4),2,0)
A().to(memory_format=torch.preserve_format)
A().clone(memory_format=torch.contiguous_format)
torch.nn.Parameter(A())
repr(A().to(torch.float64).requires_grad_())
A().narrow_copy(0,0,2)
A().bool()
sum([A(),A()])
A().t_()
A().resize_as_(S((4,4)))
A().numpy()
A().__array__()
A().sum(dtype=torch.float64)
A().is_pinned()
A().is_same_size(A())
A().share_memory_()
A().data_ptr()
A().nbytes
A().is_complex(), A().is_inference()
A().expand(2,3,3)
A().reshape(9)
A().view(9)
""".strip().splitlines()
