"""Trains a small vision transformer of Transformers on scikit-learn's handwritten digits: `python examples/vit.py`.

Writes to --out: vit.pt, vit.json, vit.png (loss curve).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
import training
from sklearn.datasets import load_digits
from torch import Tensor, nn
from transformers import ViTConfig, ViTForImageClassification


def small_vit(width: int, layers: int) -> ViTForImageClassification:
    """8x8 images in patches of 2x2."""
    config = ViTConfig(
        image_size=8,
        patch_size=2,
        num_channels=1,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 16,
        num_labels=10,
    )
    return ViTForImageClassification(config)


def digits(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images [N, 1, 8, 8] in -1..1 and labels, then test images and labels, 80 : 20 by the seed."""
    data = load_digits()
    images = torch.from_numpy(data.images).float().unsqueeze(1) / 8.0 - 1.0
    labels = torch.from_numpy(data.target).long()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    cut = len(images) * 4 // 5
    return images[order[:cut]], labels[order[:cut]], images[order[cut:]], labels[order[cut:]]


def batches(images: Tensor, labels: Tensor, size: int, seed: int) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
    """Random images, moved by up to one pixel, without end."""

    def draw() -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        padded = F.pad(images, (1, 1, 1, 1), value=-1.0)
        while True:
            chosen = torch.randint(len(images), (size,), generator=generator)
            y, x = torch.randint(3, (2,), generator=generator).tolist()
            yield padded[chosen][:, :, y : y + 8, x : x + 8], labels[chosen]

    return draw


def loss_of(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(model(pixel_values=images).logits.float(), labels)


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor, device: torch.device) -> float:
    """0..1."""
    model.eval()
    found = [model(pixel_values=part.to(device)).logits.argmax(-1).cpu() for part in images.split(60)]
    return (torch.cat(found) == labels).float().mean().item()


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = training.options("a small vision transformer on digits", steps=600, batch=64, lr=3e-3)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Trains, tests, writes files. Returns the figures."""
    args = parse(argv)
    device = training.start(args)
    images, labels, test_images, test_labels = digits(args.seed)
    model = small_vit(args.width, args.layers)
    trainer = training.Trainer(
        args, model, loss_of, batches(images, labels, args.batch, args.seed), args.batch, "images"
    )
    if args.topology:
        trainer.ahead_of_time()
        return {}
    losses = trainer.run()
    figures = trainer.report() | {"accuracy": accuracy(model, test_images, test_labels, device)}
    print(f"test accuracy {figures['accuracy']:.2%} of {len(test_labels)}")
    training.save(args, "vit", model, figures, losses)
    training.draw_losses(
        args.out / "vit.png", losses, f"{training.where(device)}\ntest accuracy {figures['accuracy']:.2%}"
    )
    return figures


if __name__ == "__main__":
    main()
