"""Text to train on that is on every machine: the Python language reference, which comes with Python, and this
project's docs."""

from __future__ import annotations

import pydoc_data.topics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def reference() -> str:
    """The Python language reference, about 460,000 letters of ASCII."""
    return _ascii("\n".join(pydoc_data.topics.topics.values()))


def project() -> str:
    """The documents of this repository."""
    root = Path(__file__).resolve().parent.parent
    return _ascii("\n".join(path.read_text() for path in sorted([*root.glob("*.md"), *(root / "docs").glob("*.md")])))


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode()


class Letters:
    """The reference as numbers, one a letter. `tokens` is all of it, `count` how many letters there are."""

    def __init__(self) -> None:
        text = reference()
        self._letters = sorted(set(text))
        self._number = {letter: i for i, letter in enumerate(self._letters)}
        self.count = len(self._letters)
        self.tokens = torch.tensor(self.encode(text))

    def encode(self, text: str) -> list[int]:
        return [self._number[letter] for letter in text if letter in self._number]

    def decode(self, tokens: list[int]) -> str:
        return "".join(self._letters[i] for i in tokens)


def word_pieces(text: str, count: int) -> Any:
    """A tokenizer of Transformers with `count` pieces, learned from the text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learn = trainers.BpeTrainer(
        vocab_size=count, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(text.splitlines(keepends=True), learn)
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def windows(tokens: Tensor, length: int, batch: int, seed: int) -> Callable[[], Iterator[tuple[Tensor, Tensor]]]:
    """A function that draws random windows of the tokens and the same one token on, [batch, length] each, without end;
    each call draws the same ones."""

    def draw() -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            begins = torch.randint(len(tokens) - length - 1, (batch, 1), generator=generator)
            found = tokens[begins + torch.arange(length + 1)]
            yield found[:, :-1], found[:, 1:]

    return draw
