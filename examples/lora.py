"""Teaches a trained model a new text with PEFT's low-rank adapters: `python examples/lora.py`.

First a small Llama learns Python's reference (or `--base out/llama`, what examples/llama.py wrote, is loaded), then
adapters of some percent of its size learn this repository's documents, while the model itself stays.
Writes to --out: lora/ (the adapters, for `PeftModel.from_pretrained`), lora.pt, lora.json, lora.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import peft
import torch
import training
from documentation import project, reference, windows, word_pieces
from llama import LENGTH, loss_of, small_llama
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer


@torch.no_grad()
def test_loss(model: nn.Module, tokens: Tensor, device: torch.device) -> float:
    """Of the first pieces of the text."""
    model.eval()
    rows = tokens[: 8 * LENGTH].view(8, LENGTH).to(device)
    return loss_of(model, rows[:, :-1], rows[:, 1:]).item()


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = training.options("low-rank adapters on a small Llama", steps=100, batch=8, lr=5e-3)
    parser.add_argument("--base", type=Path, help="a folder for from_pretrained; without it a base is trained first")
    parser.add_argument("--base-steps", type=int, default=150)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    return parser.parse_args(argv)


def base_of(args: argparse.Namespace, device: torch.device) -> tuple[Any, Any]:
    """The model to start from, and its tokenizer."""
    if args.base:
        model = AutoModelForCausalLM.from_pretrained(args.base, device_map=args.device)
        return model, AutoTokenizer.from_pretrained(args.base)
    text = reference()
    tokenizer = word_pieces(text, 1024)
    model = small_llama(len(tokenizer), args.width, args.layers)
    tokens = torch.tensor(tokenizer(text)["input_ids"])
    first = argparse.Namespace(**{**vars(args), "steps": args.base_steps, "compare": 0, "lr": 3e-3})
    training.Trainer(
        first, model, loss_of, windows(tokens, LENGTH, args.batch, args.seed), args.batch * LENGTH, "tokens"
    ).run()
    return model, tokenizer


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Trains, tests, writes files. Returns the figures."""
    args = parse(argv)
    device = training.start(args)
    if args.topology:
        args.base_steps = 0
        model, tokenizer = small_llama(1024, args.width, args.layers), word_pieces(reference(), 1024)
    else:
        model, tokenizer = base_of(args, device)
    tokens = torch.tensor(tokenizer(project())["input_ids"])
    before = 0.0 if args.topology else test_loss(model, tokens, device)
    model = peft.get_peft_model(
        model, peft.LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules="all-linear")
    )
    trained, whole = model.get_nb_trainable_parameters()
    print(f"{trained:,} of {whole:,} parameters are trained ({trained / whole:.1%})")
    batches = windows(tokens, LENGTH, args.batch, args.seed)
    trainer = training.Trainer(args, model, loss_of, batches, args.batch * LENGTH, "tokens")
    if args.topology:
        trainer.ahead_of_time()
        return {}
    losses = trainer.run()
    after = test_loss(model, tokens, device)
    print(f"loss on the documents: {before:.3f} before, {after:.3f} with adapters")
    figures = trainer.report() | {"loss_before": before, "loss_after": after, "trained_parameters": trained}
    model.save_pretrained(args.out / "lora")
    training.save(args, "lora", model, figures, losses)
    training.draw_losses(args.out / "lora.png", losses, training.where(device))
    return figures


if __name__ == "__main__":
    main()
