"""Trains a small ResNet on scikit-learn's 1,797 handwritten digits: `python examples/digits.py --device tpu` (or cpu).

Writes to --out: digits.pt (a checkpoint that loads on any device), digits.png (loss curve, test digits with predictions)
and losses.json (the loss of every step, to compare devices).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


class Block(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        # SiLU and not ReLU: a step in the gradient would turn the last bits of two devices into different curves.
        y = F.silu(self.norm1(self.conv1(x)))
        return F.silu(self.norm2(self.conv2(y)) + self.shortcut(x))


class DigitNet(nn.Module):
    """[N, 1, 8, 8] images -> [N, 10] logits."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.SiLU())
        self.blocks = nn.Sequential(Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2))
        self.head = nn.Linear(4 * width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def load(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Training and test images, [N, 1, 8, 8] in 0..1, and labels, split 80 : 20 by the seed."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16.0
    labels = torch.from_numpy(digits.target).long()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    cut = len(images) * 4 // 5
    train, test = order[:cut], order[cut:]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def where(device: torch.device) -> str:
    """One line that says what does the work."""
    if device.type != "tpu":
        return f"device {device}: PyTorch {torch.__version__}"
    from torch_tpu import _C

    return f"device {device}: {torch.tpu.get_device_name()}, plugin {_C.plugin_name()} (PJRT API {_C.plugin_version()})"


@torch.no_grad()
def predict(model: nn.Module, images: Tensor, device: torch.device, batch: int) -> Tensor:
    """The predicted digit of each image, [N] on the CPU."""
    model.eval()
    found = [model(part.to(device)).argmax(1).cpu() for part in images.split(batch)]
    model.train()
    return torch.cat(found)


def train(model: nn.Module, data: TensorDataset, device: torch.device, args: argparse.Namespace) -> list[float]:
    """Trains in place. Returns the loss of every step."""
    # The order comes from a CPU generator and the model from a CPU initialisation, so that devices can be compared.
    loader = DataLoader(
        data, args.batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(args.seed)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    steps = args.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=steps)
    losses: list[float] = []
    begin, seen = time.perf_counter(), 0
    with tqdm(total=steps, desc="train", unit="step", mininterval=0.5) as bar:
        for _ in range(args.epochs):
            for images, labels in loader:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images.to(device)), labels.to(device))
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                seen += len(images)
                rate = seen / (time.perf_counter() - begin)
                bar.set_postfix(loss=f"{losses[-1]:.4f}", images_per_s=f"{rate:,.0f}", refresh=False)
                bar.update()
    return losses


def draw(path: Path, losses: list[float], images: Tensor, labels: Tensor, found: Tensor, title: str) -> None:
    """The loss curve, and the first test digits with what the model says."""
    figure = plt.figure(figsize=(11, 4.5), layout="constrained")
    figure.suptitle(title)
    left, right = figure.subfigures(1, 2, width_ratios=[1.1, 1])
    axes = left.subplots()
    axes.plot(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross-entropy", yscale="log")
    axes.grid(alpha=0.3)
    for index, cell in enumerate(right.subplots(4, 6).flat):
        cell.imshow(images[index, 0], cmap="gray_r")
        right_answer = found[index] == labels[index]
        cell.set_title(str(int(found[index])), color="tab:green" if right_answer else "tab:red", fontsize=10)
        cell.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="a small ResNet on handwritten digits")
    parser.add_argument("--device", default="tpu" if hasattr(torch, "tpu") else "cpu")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=16, help="channels of the first stage")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> float:
    """Trains, tests, writes the files. Returns the test accuracy, 0..1."""
    args = parse(argv)
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    args.out.mkdir(parents=True, exist_ok=True)
    training, test = load(args.seed)
    model = DigitNet(args.width)
    model.to(device)
    print(where(device))

    begin = time.perf_counter()
    losses = train(model, training, device, args)
    seconds = time.perf_counter() - begin
    images, labels = test.tensors
    found = predict(model, images, device, args.batch)
    accuracy = (found == labels).float().mean().item()
    print(f"{len(losses)} steps in {seconds:.1f} s, {len(losses) * args.batch / seconds:,.0f} images/s")

    checkpoint = args.out / "digits.pt"
    torch.save(model.state_dict(), checkpoint)
    again = DigitNet(args.width)
    again.load_state_dict(torch.load(checkpoint, map_location="cpu", weights_only=True))
    same = (predict(again, images, torch.device("cpu"), args.batch) == found).float().mean().item()
    print(f"checkpoint {checkpoint}: loads on cpu, {same:.1%} of its predictions are the same")

    (args.out / "losses.json").write_text(json.dumps({"device": str(device), "seed": args.seed, "losses": losses}))
    draw(args.out / "digits.png", losses, images, labels, found, f"{where(device)}\ntest accuracy {accuracy:.2%}")
    print(f"picture {args.out / 'digits.png'}, losses {args.out / 'losses.json'}")
    print(f"test accuracy {accuracy:.2%} ({int((found == labels).sum())} of {len(labels)})")
    return accuracy


if __name__ == "__main__":
    main()
