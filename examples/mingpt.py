"""Trains a small GPT on the Python language reference that comes with Python, then writes text: `python
examples/mingpt.py`.

Letters are tokens. A few minutes on two cores give words and the look of the reference; `--prompt` says where to begin.
Writes to --out: mingpt.pt, mingpt.json (figures and losses), mingpt.png (loss curve), mingpt.txt (a sample).
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
import torch.nn.functional as F
import training
from documentation import Letters, windows
from torch import Tensor, nn

LENGTH = 128


def turned(x: Tensor, turns: Tensor) -> Tensor:
    """Pairs of numbers in [N, heads, T, width], turned by angles that grow with the place: products of two then depend
    on how far apart they are. turns: [2, T, width / 2], cosines and sines."""
    (left, right), (cos, sin) = x.chunk(2, -1), turns
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


class Block(nn.Module):
    """Attention over what came before, then a two-layer network; each adds to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(turned(q, turns), turned(k, turns), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class MinGPT(nn.Module):
    """[N, T] tokens -> [N, T, words] logits of each next token; T at most LENGTH."""

    def __init__(self, words: int, width: int = 128, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.token = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.token.weight
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        half = width // heads // 2
        angles = torch.arange(LENGTH)[:, None] * 1000.0 ** (-torch.arange(half) / half)
        self.register_buffer("turns", torch.stack([angles.cos(), angles.sin()]), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x, turns = self.token(tokens), self.turns[:, : tokens.shape[1]]
        for block in self.blocks:
            x = block(x, turns)
        return self.head(self.norm(x))


def loss_of(model: nn.Module, tokens: Tensor, following: Tensor) -> Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1).float(), following.flatten())


@torch.no_grad()
def write(
    model: nn.Module, text: Letters, prompt: str, letters: int, device: torch.device, temperature: float = 0.8
) -> str:
    """The prompt and so many letters more. The window has one size, so that one program serves all steps."""
    model.eval()
    tokens = text.encode(prompt)
    window = torch.zeros(1, LENGTH, dtype=torch.long, device=device)
    given = tokens[-LENGTH:]
    window[0, : len(given)] = torch.tensor(given, device=device)
    end = torch.tensor([len(given)], device=device)  # on the device: a position is data, not part of a program
    places = torch.arange(LENGTH, device=device)
    made = []
    for _ in range(letters):
        logits = model(window)[0].index_select(0, end - 1)[0] / temperature
        chosen = torch.multinomial(logits.softmax(-1), 1)
        full = end == LENGTH
        window = torch.where(full, window.roll(-1, 1), window)
        end = torch.where(full, end, end + 1)
        window = torch.where(places == end - 1, chosen, window)
        made.append(chosen)
    return text.decode(tokens + torch.cat(made).tolist())


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = training.options("a small GPT that writes like Python's reference", steps=600, batch=16, lr=3e-3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--letters", type=int, default=400, help="how many to write at the end")
    parser.add_argument("--prompt", default="The class statement ")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Trains, writes text and files. Returns the figures."""
    args = parse(argv)
    device = training.start(args)
    text = Letters()
    model = MinGPT(text.count, args.width, args.layers)
    batches = windows(text.tokens, LENGTH, args.batch, args.seed)
    trainer = training.Trainer(args, model, loss_of, batches, args.batch * LENGTH, "tokens")
    if args.topology:
        trainer.ahead_of_time()
        return {}
    losses = trainer.run()
    sample = write(model, text, args.prompt, args.letters, device)
    print(f"{'-' * 80}\n{sample}\n{'-' * 80}")
    (args.out / "mingpt.txt").write_text(sample)
    figures = trainer.report()
    training.save(args, "mingpt", model, figures, losses)
    training.draw_losses(args.out / "mingpt.png", losses, training.where(device))
    return figures


if __name__ == "__main__":
    main()
