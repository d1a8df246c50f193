"""Trains a small Qwen3 on Python's reference with Transformers' own Trainer, then asks its pipeline for text: `python
examples/qwen3.py`.

Nothing here is written for one device: the Trainer, `from_pretrained(device_map=..)` and `pipeline(device=..)` are
told where. Writes to --out: qwen3/ (model and tokenizer), qwen3.pt, qwen3.json, qwen3.png, qwen3.txt.
"""

from __future__ import annotations

import argparse
import copy
from typing import Any

import torch
import training
import transformers
from documentation import reference, word_pieces
from torch import Tensor
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

LENGTH = 128


class Windows(Dataset[dict[str, Tensor]]):
    """The reference in pieces of LENGTH tokens; the labels are the tokens, which the model shifts."""

    def __init__(self, tokens: Tensor) -> None:
        self.rows = tokens[: len(tokens) // LENGTH * LENGTH].view(-1, LENGTH)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def small_qwen3(words: int, width: int, layers: int) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        head_dim=32,
        max_position_embeddings=4 * LENGTH,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config)


def train(model: Any, data: Windows, args: argparse.Namespace, steps: int, cpu: bool) -> tuple[list[float], float]:
    """Trains in place. The loss of every step, and tokens/s."""
    compiled = args.compile and not cpu
    if compiled and args.device == "tpu":
        import torch_tpu.compile

        torch_tpu.compile.register()
    arguments = transformers.TrainingArguments(
        output_dir=str(args.out / "qwen3_trainer"),
        max_steps=steps,
        per_device_train_batch_size=args.batch,
        learning_rate=args.lr,
        lr_scheduler_type="constant",
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        use_cpu=cpu,
        bf16=args.bf16,
        seed=args.seed,
        torch_compile=compiled,
        torch_compile_backend=("tpu" if args.device == "tpu" else "inductor") if compiled else None,
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    trainer.remove_callback(transformers.PrinterCallback)
    result = trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return losses, steps * args.batch * LENGTH / result.metrics["train_runtime"]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = training.options("a small Qwen3, trained by Transformers' Trainer", steps=200, batch=8, lr=2e-3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--words", type=int, default=1024, help="word pieces of the tokenizer")
    parser.add_argument("--pieces", type=int, default=60, help="how many to write at the end")
    parser.add_argument("--prompt", default="The class statement")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Trains, writes text and files. Returns the figures."""
    args = parse(argv)
    device = training.start(args)
    text = reference()
    tokenizer = word_pieces(text, args.words)
    data = Windows(torch.tensor(tokenizer(text)["input_ids"]))
    model = small_qwen3(len(tokenizer), args.width, args.layers)
    begin = copy.deepcopy(model)
    if args.topology:
        batches = training.repeated((data.rows[: args.batch],))
        training.Trainer(
            args, model, lambda m, x: m(input_ids=x, labels=x).loss, batches, args.batch * LENGTH, "tokens"
        ).ahead_of_time()
        return {}
    losses, rate = train(model, data, args, args.steps, cpu=device.type == "cpu")
    figures: dict[str, Any] = {
        "device": args.device,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "tokens_per_s": rate,
    }
    print(f"{len(losses)} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}, {rate:,.0f} tokens/s with compiling")
    if args.compare and device.type != "cpu":
        host, host_rate = train(begin, data, args, min(args.compare, args.steps), cpu=True)
        worst = max(abs(a - b) / abs(b) for a, b in zip(host, losses, strict=False))
        figures |= {"cpu_tokens_per_s": host_rate, "cpu_steps": len(host), "largest_relative_difference": worst}
        print(
            f"cpu: {host_rate:,.0f} tokens/s; the losses of the first {len(host)} steps differ by at most {worst:.1e}"
        )

    model.save_pretrained(args.out / "qwen3")
    tokenizer.save_pretrained(args.out / "qwen3")
    again = AutoModelForCausalLM.from_pretrained(args.out / "qwen3", device_map=args.device)
    pipe = transformers.pipeline("text-generation", model=again, tokenizer=tokenizer)
    sample = pipe(args.prompt, max_new_tokens=args.pieces, do_sample=True, temperature=0.8, top_k=50)[0][
        "generated_text"
    ]
    print(f"{'-' * 80}\n{sample}\n{'-' * 80}")
    (args.out / "qwen3.txt").write_text(sample)
    training.save(args, "qwen3", model, figures, losses)
    training.draw_losses(args.out / "qwen3.png", losses, training.where(device))
    return figures


if __name__ == "__main__":
    main()
