"""Trains a small Llama of Transformers on the Python language reference and lets it write: `python examples/llama.py`.

Tokens are word pieces that are learned first. `--static` writes with a cache of fixed size, whose step Transformers
compiles. Writes to --out: llama/ (model and tokenizer, for `from_pretrained`), llama.pt, llama.json, llama.png,
llama.txt.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
import torch.nn.functional as F
import training
from documentation import reference, windows, word_pieces
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

LENGTH = 128


def small_llama(words: int, width: int, layers: int) -> LlamaForCausalLM:
    """Grouped queries: two query heads share a key and value head."""
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        max_position_embeddings=4 * LENGTH,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def loss_of(model: nn.Module, tokens: Tensor, following: Tensor) -> Tensor:
    logits = model(input_ids=tokens, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


def write(
    model: Any, tokenizer: Any, prompt: str, pieces: int, device: torch.device, static: bool
) -> tuple[str, float]:
    """The prompt continued by sampling, and tokens/s."""
    if static and device.type == "tpu":
        import torch_tpu.compile

        torch_tpu.compile.register()
    given = tokenizer(prompt, return_tensors="pt").to(device)
    given.pop("token_type_ids", None)
    begin = time.perf_counter()
    made = model.eval().generate(
        **given,
        max_new_tokens=pieces,
        do_sample=True,
        temperature=0.8,
        top_k=50,
        eos_token_id=None,
        cache_implementation="static" if static else "dynamic",
    )
    text = tokenizer.decode(made[0].tolist())
    return text, pieces / (time.perf_counter() - begin)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = training.options("a small Llama on Python's reference", steps=300, batch=8, lr=3e-3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--words", type=int, default=1024, help="word pieces of the tokenizer")
    parser.add_argument("--pieces", type=int, default=100, help="how many to write at the end")
    parser.add_argument("--static", action="store_true", help="write with a static cache, compiled")
    parser.add_argument("--prompt", default="The class statement")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Trains, writes text and files. Returns the figures."""
    args = parse(argv)
    device = training.start(args)
    text = reference()
    tokenizer = word_pieces(text, args.words)
    tokens = torch.tensor(tokenizer(text)["input_ids"])
    model = small_llama(len(tokenizer), args.width, args.layers)
    batches = windows(tokens, LENGTH, args.batch, args.seed)
    trainer = training.Trainer(args, model, loss_of, batches, args.batch * LENGTH, "tokens")
    if args.topology:
        trainer.ahead_of_time()
        return {}
    losses = trainer.run()
    sample, rate = write(model, tokenizer, args.prompt, args.pieces, device, args.static)
    print(f"{'-' * 80}\n{sample}\n{'-' * 80}\nwrote {rate:.1f} tokens/s, with compiling")
    (args.out / "llama.txt").write_text(sample)
    figures = trainer.report() | {"written_tokens_per_s": rate}
    model.save_pretrained(args.out / "llama")
    tokenizer.save_pretrained(args.out / "llama")
    training.save(args, "llama", model, figures, losses)
    training.draw_losses(args.out / "llama.png", losses, training.where(device))
    return figures


if __name__ == "__main__":
    main()
