"""The gradients of each example of a batch at once, by vmap and grad, and clipped one by one as private training needs them."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    inputs, labels = torch.randn(32, 6), torch.randint(0, 3, (32,))

    def loss_of(parameters: dict, row: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        scores = functional_call(model, parameters, (row.unsqueeze(0),))
        return nn.functional.cross_entropy(scores, label.unsqueeze(0))

    each = vmap(grad(loss_of), in_dims=(None, 0, 0))(parameters, inputs, labels)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    factors = (0.5 / norms).clamp(max=1.0)
    clipped = {name: torch.einsum("n,n...->...", factors, g) / len(inputs) for name, g in each.items()}
    print(
        "norms from",
        f"{norms.min():.3f} to {norms.max():.3f};",
        "clipped:",
        int((factors < 1).sum()),
        "of",
        len(inputs),
    )

    nn.functional.cross_entropy(model(inputs), labels).backward()
    for name, p in model.named_parameters():  # without clipping their mean is the gradient of the batch
        torch.testing.assert_close(each[name].mean(0), p.grad)
    assert all(clipped[name].shape == p.shape for name, p in model.named_parameters())


if __name__ == "__main__":
    main()
