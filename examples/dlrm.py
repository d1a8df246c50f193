"""Trains a small recommendation model (DLRM) on which words stand in which part of Python's reference: `python
examples/dlrm.py`.

A topic of the reference takes the part of a user, a word that of an item: the model says whether the topic has the
word. Writes to --out: dlrm.pt, dlrm.json, dlrm.png (loss curve).
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
import training
from torch import Tensor, nn

WORDS, BAG = 2000, 8


class Interactions:
    """Topics, words and who has what. Sparse features of a pair: the topic, the word, the word's last three letters,
    and a bag of BAG topics that have the word. Dense ones: how often and how widely the word is used, how long it and
    the topic are."""

    def __init__(self, seed: int) -> None:
        texts = [re.findall(r"[a-z_]{2,}", text.lower()) for text in pydoc_data.topics.topics.values()]
        counts = Counter(word for text in texts for word in text)
        words = [word for word, _ in counts.most_common(WORDS)]
        number = {word: i for i, word in enumerate(words)}
        self.has = torch.zeros(len(texts), len(words), dtype=torch.bool)
        for topic, text in enumerate(texts):
            self.has[topic, [number[word] for word in set(text) if word in number]] = True
        ends = sorted({word[-3:] for word in words})
        self.end = torch.tensor([ends.index(word[-3:]) for word in words])
        self.sizes = [len(texts), len(words), len(ends)]
        word = torch.tensor([[counts[w], len(w)] for w in words]).float().log1p()
        topic = torch.tensor([[len(t)] for t in texts]).float().log1p()
        self.word, self.topic = (word - word.mean(0)) / word.std(0), (topic - topic.mean(0)) / topic.std(0)
        generator = torch.Generator().manual_seed(seed)
        self.held_out = torch.rand(self.has.shape, generator=generator) < 0.1  # pairs to test on
        # What the bags may know: other topics with the word, held-out pairs left out.
        known = (self.has & ~self.held_out).float() + 1e-9
        self.bags = torch.multinomial(known.t().contiguous(), BAG, generator=generator)

    def pairs(self, topics: Tensor, words: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(dense [N, 3], sparse [N, 3], bags [N, BAG], labels [N])"""
        dense = torch.cat([self.word[words], self.topic[topics]], 1)
        sparse = torch.stack([topics, words, self.end[words]], 1)
        bags = self.bags[words]
        bags = torch.where(bags == topics[:, None], len(self.has), bags)  # the pair's own topic would be the answer
        return dense, sparse, bags, self.has[topics, words].float()

    def batches(self, size: int, seed: int) -> Callable[[], Iterator[tuple[Tensor, ...]]]:
        """Pairs for training, half of them of a topic and a word that it has, without end."""
        yes, no = (self.has & ~self.held_out).nonzero(), (~self.has & ~self.held_out).nonzero()

        def draw() -> Iterator[tuple[Tensor, ...]]:
            generator = torch.Generator().manual_seed(seed)
            while True:
                chosen = torch.cat(
                    [part[torch.randint(len(part), (size // 2,), generator=generator)] for part in (yes, no)]
                )
                yield self.pairs(chosen[:, 0], chosen[:, 1])

        return draw


class DLRM(nn.Module):
    """Embeddings and a network of the dense features, their products with one another, and a network on top ->
    logits [N]."""

    def __init__(self, sizes: list[int], width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in sizes)
        self.bag = nn.EmbeddingBag(sizes[0] + 1, width, mode="mean", padding_idx=sizes[0])
        self.bottom = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        parts = len(sizes) + 2
        self.top = nn.Sequential(nn.Linear(width + parts * (parts - 1) // 2, 128), nn.ReLU(), nn.Linear(128, 1))
        rows, columns = torch.tril_indices(parts, parts, -1)
        self.register_buffer("pairs", rows * parts + columns, persistent=False)

    def forward(self, dense: Tensor, sparse: Tensor, bags: Tensor) -> Tensor:
        bottom = self.bottom(dense)
        parts = [bottom, self.bag(bags), *(table(sparse[:, i]) for i, table in enumerate(self.tables))]
        stacked = torch.stack(parts, 1)
        products = (stacked @ stacked.transpose(1, 2)).flatten(1)[:, self.pairs]
        return self.top(torch.cat([bottom, products], 1)).squeeze(1)


def loss_of(model: nn.Module, dense: Tensor, sparse: Tensor, bags: Tensor, label: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(model(dense, sparse, bags).float(), label)


@torch.no_grad()
def area(model: nn.Module, data: Interactions, device: torch.device) -> float:
    """Area under the ROC curve of the held-out pairs: how often a pair that is ranks above one that is not."""
    from sklearn.metrics import roc_auc_score

    model.eval()
    topics, words = data.held_out.nonzero().t()
    found, labels = [], []
    for t, w in zip(topics.split(4096)[:-1], words.split(4096)[:-1], strict=True):
        dense, sparse, bags, label = data.pairs(t, w)
        found.append(model(dense.to(device), sparse.to(device), bags.to(device)).cpu())
        labels.append(label)
    return float(roc_auc_score(torch.cat(labels).numpy(), torch.cat(found).numpy()))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = training.options("a small recommendation model", steps=1000, batch=512, lr=5e-3)
    parser.add_argument("--width", type=int, default=16, help="numbers a row of a table")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Trains, tests, writes files. Returns the figures."""
    args = parse(argv)
    device = training.start(args)
    data = Interactions(args.seed)
    model = DLRM(data.sizes, args.width)
    trainer = training.Trainer(args, model, loss_of, data.batches(args.batch, args.seed), args.batch, "pairs")
    if args.topology:
        trainer.ahead_of_time()
        return {}
    losses = trainer.run()
    figures = trainer.report() | {"area_under_curve": area(model, data, device)}
    print(f"area under the curve {figures['area_under_curve']:.3f} of {int(data.held_out.sum())} held-out pairs")
    training.save(args, "dlrm", model, figures, losses)
    training.draw_losses(args.out / "dlrm.png", losses, training.where(device))
    return figures


if __name__ == "__main__":
    main()
