"""Train a small convolutional network to tell rows from columns in noisy images."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def images(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of 12 by 12 with one bright row (class 0) or column (class 1), and their classes."""
    labels = torch.randint(0, 2, (count,))
    made = torch.rand(count, 1, 12, 12) * 0.5
    for image, label, place in zip(made, labels.tolist(), torch.randint(0, 12, (count,)).tolist()):
        (image[0, :, place] if label else image[0, place]).add_(0.7)
    return made, labels


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(144, 2),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(TensorDataset(*images(512)), batch_size=32, shuffle=True)
    for epoch in range(4):
        for batch, labels in loader:
            loss = nn.functional.cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}  loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        batch, labels = images(256)
        right = (model(batch).argmax(1) == labels).float().mean().item()
    print(f"{right:.1%} of new images are told right")
    assert right > 0.95


if __name__ == "__main__":
    main()
