"""Trains a small diffusion model (a UNet) on scikit-learn's handwritten digits and draws new ones: `python
examples/diffusion.py`.

Writes to --out: diffusion.pt, diffusion.json, diffusion.png (loss curve and drawn digits).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
import training
from sklearn.datasets import load_digits
from torch import Tensor, nn

STEPS = 100  # of noise


class Block(nn.Module):
    """Two convolutions with a shortcut; the time is added between them."""

    def __init__(self, channels_in: int, channels_out: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, channels_in), nn.GroupNorm(4, channels_out)
        self.conv1, self.conv2 = (
            nn.Conv2d(channels_in, channels_out, 3, 1, 1),
            nn.Conv2d(channels_out, channels_out, 3, 1, 1),
        )
        self.time = nn.Linear(time, channels_out)
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1) if channels_in != channels_out else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.conv2(F.silu(self.norm2(y))) + self.shortcut(x)


class UNet(nn.Module):
    """Noisy images [N, 1, 8, 8], time steps [N] and digits [N] -> the noise in them [N, 1, 8, 8]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, time = width, 4 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.digit = nn.Embedding(10, time)
        self.first = nn.Conv2d(1, width, 3, 1, 1)
        self.down1, self.down2 = Block(width, width, time), Block(width, 2 * width, time)
        self.middle = Block(2 * width, 2 * width, time)
        self.up2, self.up1 = Block(4 * width, width, time), Block(2 * width, width, time)
        self.last = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 1, 3, 1, 1))

    def forward(self, x: Tensor, step: Tensor, digit: Tensor) -> Tensor:
        frequencies = torch.exp(torch.arange(self.width // 2, device=x.device) * (-math.log(1e4) / (self.width // 2)))
        angles = step[:, None].float() * frequencies
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1)) + self.digit(digit)
        whole = self.down1(self.first(x), time)
        half = self.down2(F.avg_pool2d(whole, 2), time)
        quarter = self.middle(F.avg_pool2d(half, 2), time)
        half = self.up2(torch.cat([F.interpolate(quarter, scale_factor=2), half], 1), time)
        return self.last(self.up1(torch.cat([F.interpolate(half, scale_factor=2), whole], 1), time))


def kept() -> Tensor:
    """How much of the image is left after each step, [STEPS], by a cosine."""
    t = torch.arange(STEPS + 1) / STEPS
    signal = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
    return torch.cumprod((signal[1:] / signal[:-1]).clamp(min=0.001), 0)


def batches(size: int, seed: int) -> Callable[[], Iterator[tuple[Tensor, ...]]]:
    """(noisy images, steps, digits, the noise), without end. Drawn on the CPU, so that devices can be compared."""
    data = load_digits()
    images = torch.from_numpy(data.images).float().unsqueeze(1) / 8.0 - 1.0
    digits = torch.from_numpy(data.target).long()
    signal = kept()

    def draw() -> Iterator[tuple[Tensor, ...]]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            chosen = torch.randint(len(images), (size,), generator=generator)
            step = torch.randint(STEPS, (size,), generator=generator)
            noise = torch.randn(size, 1, 8, 8, generator=generator)
            left = signal[step][:, None, None, None]
            yield left.sqrt() * images[chosen] + (1 - left).sqrt() * noise, step, digits[chosen], noise

    return draw


def loss_of(model: nn.Module, noisy: Tensor, step: Tensor, digit: Tensor, noise: Tensor) -> Tensor:
    return F.mse_loss(model(noisy, step, digit).float(), noise)


@torch.no_grad()
def draw(model: nn.Module, digits: Tensor, device: torch.device, seed: int) -> Tensor:
    """New images of these digits, [N, 1, 8, 8] on the CPU: noise is taken away step by step (DDIM, no noise added)."""
    model.eval()
    signal = kept()
    x = torch.randn(len(digits), 1, 8, 8, generator=torch.Generator().manual_seed(seed)).to(device)
    digits = digits.to(device)
    for step in reversed(range(STEPS)):
        now = signal[step].to(device)
        before = signal[step - 1].to(device) if step else torch.ones((), device=device)
        noise = model(x, torch.full((len(digits),), step).to(device), digits)
        image = ((x - (1 - now).sqrt() * noise) / now.sqrt()).clamp(-1, 1)
        x = before.sqrt() * image + (1 - before).sqrt() * noise
    return x.cpu()


def picture(path: Path, losses: list[float], images: Tensor, title: str) -> None:
    """The loss curve and what was drawn, ten a row."""
    figure = plt.figure(figsize=(11, 4), layout="constrained")
    figure.suptitle(title)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
    axes = left.subplots()
    axes.plot(losses, linewidth=0.6)
    axes.set(xlabel="step", ylabel="loss", yscale="log")
    axes.grid(alpha=0.3)
    for image, cell in zip(images, right.subplots(len(images) // 10, 10).flat, strict=True):
        cell.imshow(image[0], cmap="gray_r", vmin=-1, vmax=1)
        cell.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = training.options("a small diffusion model of digits", steps=2000, batch=64, lr=2e-3)
    parser.add_argument("--width", type=int, default=32)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Trains, draws, writes files. Returns the figures."""
    args = parse(argv)
    device = training.start(args)
    model = UNet(args.width)
    trainer = training.Trainer(args, model, loss_of, batches(args.batch, args.seed), args.batch, "images")
    if args.topology:
        trainer.ahead_of_time()
        return {}
    losses = trainer.run()
    images = draw(model, torch.arange(10).repeat(4), device, args.seed)
    figures = trainer.report()
    training.save(args, "diffusion", model, figures, losses)
    picture(args.out / "diffusion.png", losses, images, training.where(device))
    return figures


if __name__ == "__main__":
    main()
