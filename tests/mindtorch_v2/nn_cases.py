"""Modules, functions and optimizers that are compared with PyTorch's: expressions that tests/record_nn.py evaluates there, and
test_nn_modules.py and test_optim.py here."""

from __future__ import annotations

# (module, inputs); seeds are set before either, `rand` makes inputs that require grad.
MODULES = [
    ("nn.Identity(3, more=1)", "rand(2, 2)"),
    ("nn.Linear(3, 2)", "rand(4, 3)"),
    ("nn.Linear(3, 2, bias=False)", "rand(2, 4, 3)"),
    ("nn.Linear(3, 2, dtype=torch.float64)", "rand(3, dtype=torch.float64)"),
    ("nn.Bilinear(2, 3, 4)", "rand(5, 2), rand(5, 3)"),
    ("nn.Embedding(5, 3)", "ints(5, 2, 4)"),
    ("nn.Embedding(5, 3, padding_idx=-1)", "torch.tensor([4, 0, 4, 1])"),
    ("nn.Embedding(5, 3, max_norm=1.0)", "torch.tensor([4, 0, 4, 1])"),
    ("nn.Embedding(5, 3, scale_grad_by_freq=True)", "torch.tensor([4, 0, 4, 1])"),
    ("nn.EmbeddingBag(5, 3)", "ints(5, 2, 4)"),
    ("nn.EmbeddingBag(5, 3, mode='sum')", "ints(5, 6), torch.tensor([0, 2, 3])"),
    ("nn.EmbeddingBag(5, 3, mode='max', padding_idx=1)", "ints(5, 2, 4)"),
    ("nn.LayerNorm(4)", "rand(2, 3, 4)"),
    ("nn.LayerNorm((3, 4), bias=False)", "rand(2, 3, 4)"),
    ("nn.LayerNorm(4, elementwise_affine=False)", "rand(2, 3, 4)"),
    ("nn.RMSNorm(4)", "rand(2, 3, 4)"),
    ("nn.RMSNorm((3, 4), eps=0.1, elementwise_affine=False)", "rand(2, 3, 4)"),
    ("nn.GroupNorm(2, 4)", "rand(2, 4, 3)"),
    ("nn.GroupNorm(2, 4, bias=False)", "rand(2, 4)"),
    ("nn.BatchNorm1d(3)", "rand(4, 3)"),
    ("nn.BatchNorm1d(3).eval()", "rand(4, 3, 2)"),
    ("nn.BatchNorm1d(3, momentum=None)", "rand(4, 3, 2)"),
    ("nn.BatchNorm2d(3, affine=False)", "rand(2, 3, 2, 2)"),
    ("nn.BatchNorm3d(2, track_running_stats=False)", "rand(2, 2, 2, 2, 1)"),
    ("nn.InstanceNorm1d(3)", "rand(2, 3, 4)"),
    ("nn.InstanceNorm2d(3, affine=True, track_running_stats=True)", "rand(2, 3, 2, 2)"),
    ("nn.LocalResponseNorm(2)", "rand(2, 3, 4)"),
    ("nn.CrossMapLRN2d(3)", "rand(2, 4, 2, 2)"),
    ("nn.Dropout(0.4)", "rand(3, 4)"),
    ("nn.Dropout(0.4).eval()", "rand(3, 4)"),
    ("nn.Dropout1d()", "rand(2, 3, 4)"),
    ("nn.Dropout2d(0.3)", "rand(2, 3, 2, 2)"),
    ("nn.Dropout3d(0.3)", "rand(2, 3, 2, 2, 1)"),
    ("nn.AlphaDropout(0.3)", "rand(3, 4)"),
    ("nn.ReLU()", "rand(3, 4)"),
    ("nn.RReLU()", "rand(3, 4)"),
    ("nn.RReLU().eval()", "rand(3, 4)"),
    ("nn.Hardtanh(-0.5, 0.5)", "rand(3, 4)"),
    ("nn.ReLU6()", "rand(3, 4)"),
    ("nn.Sigmoid()", "rand(3, 4)"),
    ("nn.Hardsigmoid()", "rand(3, 4)"),
    ("nn.Tanh()", "rand(3, 4)"),
    ("nn.SiLU()", "rand(3, 4)"),
    ("nn.Mish()", "rand(3, 4)"),
    ("nn.Hardswish()", "rand(3, 4)"),
    ("nn.ELU(0.5)", "rand(3, 4)"),
    ("nn.CELU(0.5)", "rand(3, 4)"),
    ("nn.SELU()", "rand(3, 4)"),
    ("nn.GLU()", "rand(3, 4)"),
    ("nn.GELU()", "rand(3, 4)"),
    ("nn.GELU('tanh')", "rand(3, 4)"),
    ("nn.Hardshrink()", "rand(3, 4)"),
    ("nn.LeakyReLU(0.1)", "rand(3, 4)"),
    ("nn.LogSigmoid()", "rand(3, 4)"),
    ("nn.Softplus(2.0, 1.0)", "rand(3, 4)"),
    ("nn.Softshrink()", "rand(3, 4)"),
    ("nn.PReLU(3)", "rand(2, 3, 4)"),
    ("nn.Softsign()", "rand(3, 4)"),
    ("nn.Tanhshrink()", "rand(3, 4)"),
    ("nn.Softmin(1)", "rand(3, 4)"),
    ("nn.Softmax(-1)", "rand(3, 4)"),
    ("nn.Softmax2d()", "rand(3, 2, 4)"),
    ("nn.LogSoftmax(0)", "rand(3, 4)"),
    ("nn.Threshold(0.1, 20)", "rand(3, 4)"),
    ("nn.MultiheadAttention(4, 2)", "rand(3, 2, 4), rand(5, 2, 4), rand(5, 2, 4)"),
    ("nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)", "same(rand(2, 3, 4), 3)"),
    ("nn.MultiheadAttention(4, 2, kdim=3, vdim=5, bias=False)", "rand(3, 4), rand(2, 3), rand(2, 5)"),
    ("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))", "rand(2, 3)"),
    ("nn.L1Loss()", "rand(3, 4), rand(3, 4)"),
    ("nn.MSELoss(reduction='sum')", "rand(3, 4), rand(3, 4)"),
    ("nn.CrossEntropyLoss()", "rand(3, 4), ints(4, 3)"),
    ("nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 4.0]), label_smoothing=0.1)", "rand(3, 4), ints(4, 3)"),
    ("nn.CrossEntropyLoss(ignore_index=2, reduction='none')", "rand(2, 4, 3), ints(4, 2, 3)"),
    ("nn.CrossEntropyLoss()", "rand(3, 4), rand(3, 4).softmax(1).detach()"),
    ("nn.NLLLoss()", "rand(3, 4), ints(4, 3)"),
    ("nn.PoissonNLLLoss(full=True)", "rand(3, 4), ints(4, 3, 4).float()"),
    ("nn.GaussianNLLLoss()", "rand(3, 4), rand(3, 4), rand(3, 4).exp().detach()"),
    ("nn.KLDivLoss(reduction='batchmean')", "rand(3, 4), rand(3, 4).softmax(1).detach()"),
    ("nn.BCELoss()", "rand(3, 4).sigmoid(), ints(2, 3, 4).float()"),
    ("nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))", "rand(3, 4), ints(2, 3, 4).float()"),
    ("nn.HingeEmbeddingLoss(0.5)", "rand(3, 4), signs(3, 4)"),
    ("nn.SmoothL1Loss(beta=0.5)", "rand(3, 4), rand(3, 4)"),
    ("nn.HuberLoss(delta=0.5)", "rand(3, 4), rand(3, 4)"),
    ("nn.SoftMarginLoss()", "rand(3, 4), signs(3, 4)"),
    ("nn.MultiLabelSoftMarginLoss()", "rand(3, 4), ints(2, 3, 4).float()"),
    ("nn.CosineEmbeddingLoss(0.1)", "rand(3, 4), rand(3, 4), signs(3)"),
    ("nn.MarginRankingLoss(0.1)", "rand(3), rand(3), signs(3)"),
    ("nn.MultiMarginLoss(p=2)", "rand(3, 4), ints(4, 3)"),
    ("nn.TripletMarginLoss(swap=True)", "rand(3, 4), rand(3, 4), rand(3, 4)"),
    ("nn.TripletMarginWithDistanceLoss()", "rand(3, 4), rand(3, 4), rand(3, 4)"),
    (
        "nn.CTCLoss()",
        "rand(6, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 3]]), torch.tensor([6, 5]), torch.tensor([2, 2])",
    ),
    ("nn.LinearCrossEntropyLoss(3, 4)", "rand(5, 3), ints(4, 5)"),
    ("nn.CosineSimilarity()", "rand(3, 4), rand(3, 4)"),
    ("nn.PairwiseDistance(keepdim=True)", "rand(3, 4), rand(3, 4)"),
    ("nn.Conv1d(4, 6, 3, padding=1, groups=2)", "rand(2, 4, 5)"),
    ("nn.Conv1d(2, 3, 3, padding='same', padding_mode='circular')", "rand(2, 2, 5)"),
    ("nn.Conv2d(2, 3, (2, 3), stride=2, dilation=(1, 2), bias=False)", "rand(2, 2, 5, 6)"),
    ("nn.Conv3d(1, 2, 2)", "rand(1, 3, 3, 3)"),
    ("nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1)", "rand(2, 2, 3)"),
    ("nn.ConvTranspose2d(2, 4, 2, groups=2)", "rand(1, 2, 3, 3)"),
    ("nn.MaxPool1d(2)", "rand(2, 3, 6)"),
    ("nn.MaxPool2d(2, padding=1, ceil_mode=True)", "rand(2, 3, 4, 5)"),
    ("nn.MaxPool2d(2, return_indices=True)", "rand(1, 4, 4)"),
    ("nn.AvgPool1d(3, 2, 1, count_include_pad=False)", "rand(2, 3, 6)"),
    ("nn.AvgPool2d(2)", "rand(2, 3, 4, 5)"),
    ("nn.AdaptiveAvgPool1d(3)", "rand(2, 3, 7)"),
    ("nn.AdaptiveAvgPool2d((None, 2))", "rand(2, 3, 4, 5)"),
    ("nn.AdaptiveMaxPool2d(2)", "rand(2, 3, 4, 5)"),
    ("nn.LPPool1d(2, 2)", "rand(2, 3, 6).abs()"),
    ("nn.Flatten()", "rand(2, 3, 4)"),
    ("nn.Unflatten(1, (2, 3))", "rand(2, 6)"),
    ("nn.ReflectionPad1d((1, 2))", "rand(2, 3, 4)"),
    ("nn.ReplicationPad2d(1)", "rand(2, 3, 2, 2)"),
    ("nn.ZeroPad2d((1, 0, 2, 1))", "rand(2, 3, 2)"),
    ("nn.ConstantPad1d(1, 3.5)", "rand(2, 3)"),
    ("nn.CircularPad1d(2)", "rand(2, 3, 4)"),
    ("nn.PixelShuffle(2)", "rand(1, 4, 2, 2)"),
    ("nn.PixelUnshuffle(2)", "rand(1, 1, 4, 4)"),
    ("nn.ChannelShuffle(2)", "rand(1, 4, 2, 2)"),
    ("nn.Upsample(scale_factor=2)", "rand(1, 2, 3)"),
    ("nn.Upsample(size=(5, 4), mode='bilinear')", "rand(1, 2, 3, 3)"),
    ("nn.Unfold(2)", "rand(1, 2, 3, 3)"),
    ("nn.Fold((3, 3), 2)", "rand(1, 8, 4)"),
    ("nn.RNN(3, 4)", "rand(5, 2, 3)"),
    ("nn.RNN(3, 4, nonlinearity='relu', bias=False)", "rand(5, 3)"),
    ("nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)", "rand(2, 5, 3)"),
    ("nn.LSTM(3, 4, proj_size=2)", "rand(5, 2, 3), (rand(1, 2, 2), rand(1, 2, 4))"),
    ("nn.LSTM(3, 4, 2, dropout=0.5)", "rand(5, 2, 3)"),
    ("nn.GRU(3, 4, bidirectional=True)", "rand(5, 2, 3)"),
    ("nn.GRU(3, 4)", "rnn.pack_padded_sequence(rand(5, 3, 3), [2, 5, 3], enforce_sorted=False)"),
    ("nn.LSTM(3, 4, bidirectional=True)", "rnn.pack_padded_sequence(rand(5, 3, 3), [5, 3, 2])"),
    ("nn.RNNCell(3, 4)", "rand(2, 3)"),
    ("nn.LSTMCell(3, 4)", "rand(2, 3), (rand(2, 4), rand(2, 4))"),
    ("nn.GRUCell(3, 4)", "rand(3)"),
    ("nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)", "rand(2, 3, 4)"),
    ("nn.TransformerDecoderLayer(4, 2, 6, 0.0, 'gelu', norm_first=True)", "rand(3, 2, 4), rand(5, 2, 4)"),
    ("nn.Transformer(4, 2, 1, 1, 6, 0.0)", "rand(3, 2, 4), rand(2, 2, 4)"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 4], div_value=2.0)", "rand(5, 4), torch.tensor([0, 3, 7, 1, 4])"),
    ("parametrizations.weight_norm(nn.Linear(3, 2))", "rand(4, 3)"),
    ("parametrizations.weight_norm(nn.Conv1d(2, 3, 2), dim=None)", "rand(2, 2, 4)"),
    ("nn.utils.weight_norm(nn.Linear(3, 2), dim=1)", "rand(4, 3)"),
    ("parametrizations.spectral_norm(nn.Linear(3, 2))", "rand(4, 3)"),
]

# Calls of torch.nn.init on the tensor `t` of the given shape.
INITS = [
    ("init.uniform_(t)", (3, 4)),
    ("init.uniform_(t, -2.0, 3.0)", (20,)),
    ("init.normal_(t, 1.0, 2.0)", (5, 4)),
    ("init.constant_(t, 3.5)", (2, 2)),
    ("init.ones_(t)", (2,)),
    ("init.zeros_(t)", (2,)),
    ("init.eye_(t)", (3, 4)),
    ("init.dirac_(t)", (3, 2, 3)),
    ("init.dirac_(t, 2)", (4, 2, 3, 3)),
    ("init.xavier_uniform_(t, 2.0)", (3, 4)),
    ("init.xavier_normal_(t)", (3, 4, 2)),
    ("init.kaiming_uniform_(t, a=math.sqrt(5))", (3, 4)),
    ("init.kaiming_normal_(t, mode='fan_out', nonlinearity='relu')", (3, 4, 2, 2)),
    ("init.trunc_normal_(t)", (30,)),
    ("init.trunc_normal_(t, 0.5, 1.0, -0.1, 0.2)", (30,)),
    ("init.trunc_normal_(t, 0.0, 0.02, -0.01, 3.0)", (30,)),
    ("init.orthogonal_(t, 2.0)", (3, 5)),
    ("init.sparse_(t, 0.4)", (5, 3)),
]

# Optimizers of the parameters `p`; some are also run with options that change the update.
OPTIMIZERS = [
    "SGD(p, 0.1)",
    "SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01)",
    "SGD(p, 0.1, momentum=0.9, nesterov=True, maximize=True)",
    "Adam(p, 0.1)",
    "Adam(p, 0.1, betas=(0.8, 0.9), weight_decay=0.1, amsgrad=True)",
    "Adam(p, torch.tensor(0.1), foreach=False)",
    "AdamW(p, 0.1, foreach=True)",
    "AdamW(p, 0.1, eps=1e-3, weight_decay=0.2, maximize=True)",
    "Adagrad(p, 0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)",
    "RMSprop(p, 0.1, momentum=0.5, centered=True, weight_decay=0.1)",
    "RMSprop(p)",
    "Adadelta(p, weight_decay=0.1)",
    "Adamax(p, 0.1, weight_decay=0.1)",
    "NAdam(p, 0.1, weight_decay=0.1)",
    "NAdam(p, 0.1, weight_decay=0.1, decoupled_weight_decay=True)",
    "RAdam(p, 0.1, weight_decay=0.1)",
    "Rprop(p, 0.1)",
    "ASGD(p, 0.1, t0=2.0, weight_decay=0.1)",
    "Adafactor(p, 0.1, weight_decay=0.1)",
    "Muon(p[:1], 0.1)",
    "LBFGS(p, 0.1, max_iter=4)",
    "LBFGS(p, line_search_fn='strong_wolfe')",
]

# Schedules of an SGD optimizer `o` with two groups of the rates 0.1 and 0.3, and momentum.
SCHEDULES = [
    "LambdaLR(o, lambda epoch: 0.95**epoch)",
    "LambdaLR(o, [lambda epoch: 0.95**epoch, lambda epoch: 1 / (epoch + 1)])",
    "MultiplicativeLR(o, lambda epoch: 0.95)",
    "StepLR(o, 3, 0.5)",
    "MultiStepLR(o, [2, 5, 5, 7])",
    "ConstantLR(o, 0.5, 4)",
    "LinearLR(o, 0.2, 0.9, 4)",
    "ExponentialLR(o, 0.9)",
    "PolynomialLR(o, 4, 2.0)",
    "CosineAnnealingLR(o, 4, 0.01)",
    "CosineAnnealingWarmRestarts(o, 3, 2, 0.01)",
    "CyclicLR(o, 0.01, 0.2, 3, 2)",
    "CyclicLR(o, 0.01, 0.2, 3, mode='triangular2')",
    "CyclicLR(o, [0.01, 0.02], [0.2, 0.3], 3, scale_fn=lambda x: 0.5**x, scale_mode='iterations')",
    "OneCycleLR(o, 0.3, 15)",
    "OneCycleLR(o, [0.3, 0.4], epochs=3, steps_per_epoch=5, three_phase=True, anneal_strategy='linear')",
    "SequentialLR(o, [ConstantLR(o, 0.1, 3), ExponentialLR(o, 0.9), CosineAnnealingLR(o, 4)], [3, 7])",
    "ChainedScheduler([ConstantLR(o, 0.1, 3), ExponentialLR(o, 0.9)])",
    "ReduceLROnPlateau(o, patience=1, cooldown=1, min_lr=[0.001, 0.01])",
    "ReduceLROnPlateau(o, 'max', 0.5, 0, threshold_mode='abs')",
    "SWALR(o, 0.05, 5)",
]
METRICS = [5, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 2, 2, 2]


def flat_tensors(torch, value):
    """All tensors in nested tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in flat_tensors(torch, item)]
    return []


def inputs_scope(torch, leaves):
    """What the input expressions may use; tensors that require grad are added to `leaves`."""

    def rand(*size, **options):
        tensor = torch.randn(*size, **options).requires_grad_()
        leaves.append(tensor)
        return tensor

    def ints(high, *size):
        return torch.randint(0, high, size)

    def signs(*size):
        return ints(2, *size).float() * 2 - 1

    return {
        "torch": torch,
        "rand": rand,
        "ints": ints,
        "signs": signs,
        "same": lambda tensor, times: (tensor,) * times,
        "rnn": torch.nn.utils.rnn,
    }


def run_module(torch, expression, inputs):
    """The module, its first state, outputs, and the gradients of inputs and parameters."""
    torch.manual_seed(0)
    scope = {"torch": torch, "nn": torch.nn, "parametrizations": torch.nn.utils.parametrizations}
    module = eval(expression, scope)
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    torch.manual_seed(1)
    leaves = []
    arguments = eval(f"({inputs},)", inputs_scope(torch, leaves))
    if len(arguments) == 1 and type(arguments[0]) is tuple:
        arguments = arguments[0]
    outputs = flat_tensors(torch, module(*arguments))
    # Weighted, so that a gradient in the wrong place shows.
    total = sum(
        (output * torch.arange(1, output.numel() + 1, dtype=output.dtype).view(output.shape)).sum()
        for output in outputs
        if output.requires_grad
    )
    if isinstance(total, torch.Tensor):
        total.backward()
    return {
        "repr": repr(module),
        "state": state,
        "outputs": outputs,
        "input_grads": [leaf.grad for leaf in leaves],
        "grads": {name: param.grad for name, param in module.named_parameters()},
    }


def run_init(torch, math, expression, shape):
    """The tensor after the call."""
    torch.manual_seed(3)
    tensor = torch.empty(shape)
    result = eval(expression, {"init": torch.nn.init, "math": math, "t": tensor})
    assert result is tensor
    return tensor


def run_optimizer(torch, expression, steps=6):
    """The optimizer, and its parameters after some steps down a bowl with a ridge."""
    torch.manual_seed(2)
    params = [torch.nn.Parameter(torch.randn(3, 2)), torch.nn.Parameter(torch.randn(4))]
    optimizer = eval(expression, {**vars(torch.optim), "torch": torch, "p": params})

    def closure():
        optimizer.zero_grad()
        loss = sum((param**2 * (scale + 1) - param.abs()).sum() for scale, param in enumerate(params))
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return optimizer, params


def run_schedule(torch, expression):
    """The scheduler, its optimizer, and the rates and momenta of all epochs."""
    params = [torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.3}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    scope = {**vars(torch.optim.lr_scheduler), **vars(torch.optim.swa_utils), "o": optimizer}
    scheduler = eval(expression, scope)
    history = []
    for metric in METRICS:
        history.append([(group["lr"], group["momentum"]) for group in optimizer.param_groups])
        optimizer.step()
        if "Plateau" in expression:
            scheduler.step(metric)
        else:
            scheduler.step()
    history.append([(rate,) for rate in scheduler.get_last_lr()])
    return scheduler, optimizer, history
