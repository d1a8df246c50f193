"""What the examples share: the device and its modes on the command line, a loop with a progress bar, the same steps on
the CPU, and the files at the end."""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from tqdm import tqdm

LossOf = Callable[..., Tensor]  # (model, *batch) -> the loss, 0-d
Batch = tuple[Tensor, ...]  # on the CPU


def options(description: str, *, steps: int, batch: int, lr: float) -> argparse.ArgumentParser:
    """The options that all examples have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--device", default="tpu" if hasattr(torch, "tpu") else "cpu")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--lr", type=float, default=lr)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="compile the step (backend tpu, or inductor on cpu)")
    parser.add_argument("--fused", action="store_true", help="fused eager mode of tpu")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument(
        "--compare", type=int, default=10, metavar="N", help="repeat the first N steps on the CPU; 0: do not"
    )
    parser.add_argument(
        "--topology", metavar="NAME", help="compile the step for such a TPU (v6e:1x1), report, and train nothing"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is written")
    return parser


def start(args: argparse.Namespace) -> torch.device:
    """Seeds, chooses the eager mode, says what does the work."""
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    device = torch.device(args.device)
    if args.fused and device.type == "tpu":
        torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE
    if not args.topology:
        print(where(device))
    return device


def where(device: torch.device) -> str:
    """One line that says what does the work."""
    if device.type != "tpu":
        return f"device {device}: PyTorch {torch.__version__}"
    from torch_tpu import _C

    return f"device {device}: {torch.tpu.get_device_name()}, plugin {_C.plugin_name()} (PJRT API {_C.plugin_version()})"


class Trainer:
    """Trains `model` in place on batches from `draw`, by `loss_of(model, *batch)` and AdamW with a cosine schedule."""

    def __init__(
        self,
        args: argparse.Namespace,
        model: nn.Module,
        loss_of: LossOf,
        draw: Callable[[], Iterator[Batch]],
        items: int,
        unit: str,
    ) -> None:
        """`draw` gives the same batches each time it is called; a batch has `items` of `unit` (tokens, images)."""
        self.args, self.loss_of, self.draw, self.items, self.unit = args, loss_of, draw, items, unit
        self.model, self.begin = model, copy.deepcopy(model).cpu() if args.compare and args.device != "cpu" else None
        self.losses: list[float] = []
        self.rate = 0.0

    def _step(self, model: nn.Module, device: torch.device, compiled: bool) -> tuple[Callable[..., Tensor], Any]:
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, self.args.lr, betas=(0.9, 0.95), weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, self.args.lr, total_steps=self.args.steps, pct_start=0.1
        )
        loss_of = self.loss_of
        if compiled:
            if device.type == "tpu":
                import torch_tpu.compile

                torch_tpu.compile.register()
            loss_of = torch.compile(loss_of, backend="tpu" if device.type == "tpu" else "inductor")

        def step(*batch: Tensor) -> Tensor:
            with torch.autocast(device.type, torch.bfloat16, enabled=self.args.bf16):
                loss = loss_of(model, *batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            return loss.detach()

        return step, schedule

    def run(self) -> list[float]:
        """Trains; gives the loss of every step. The rate leaves out the first steps, which compile."""
        device = torch.device(self.args.device)
        self.model.to(device)
        self.losses, self.rate = self._run(self.model, device, self.args.steps, "train", self.args.compile)
        return self.losses

    def _run(
        self, model: nn.Module, device: torch.device, count: int, name: str, compiled: bool
    ) -> tuple[list[float], float]:
        step, schedule = self._step(model, device, compiled)
        waiting: list[Tensor] = []
        losses: list[float] = []
        warm = min(5, count // 2)
        begin = time.perf_counter()
        model.train()
        with tqdm(total=count, desc=name, unit="step", mininterval=0.5) as bar:
            for index, batch in zip(range(count), self.draw(), strict=False):
                waiting.append(step(*(t.to(device) for t in batch)))
                schedule.step()
                if index + 1 == warm or len(waiting) == 10 or index + 1 == count:
                    losses += torch.stack(waiting).tolist()  # the one place that waits for the device
                    bar.update(len(waiting))
                    waiting.clear()
                    if index + 1 == warm:
                        begin = time.perf_counter()
                    elif index + 1 > warm:
                        rate = (index + 1 - warm) * self.items / (time.perf_counter() - begin)
                        bar.set_postfix(loss=f"{losses[-1]:.4f}", rate=f"{rate:,.0f} {self.unit}/s", refresh=False)
        seconds = time.perf_counter() - begin
        return losses, (count - warm) * self.items / max(seconds, 1e-9)

    def report(self) -> dict[str, Any]:
        """Repeats the first steps eagerly on the CPU from the same start, prints the figures, and gives them."""
        figures: dict[str, Any] = {
            "device": self.args.device,
            "steps": len(self.losses),
            "first_loss": self.losses[0],
            "last_loss": self.losses[-1],
            f"{self.unit}_per_s": self.rate,
        }
        first, last = self.losses[0], self.losses[-1]
        print(f"{len(self.losses)} steps, loss {first:.4f} -> {last:.4f}, {self.rate:,.0f} {self.unit}/s")
        if self.begin is not None:
            count = min(self.args.compare, len(self.losses))
            host, rate = self._run(self.begin, torch.device("cpu"), count, "the same on cpu", False)
            worst = max(abs(a - b) / max(abs(b), 1e-9) for a, b in zip(host, self.losses, strict=False))
            figures |= {f"cpu_{self.unit}_per_s": rate, "cpu_steps": count, "largest_relative_difference": worst}
            print(
                f"cpu: {rate:,.0f} {self.unit}/s; the losses of the first {count} steps differ by at most {worst:.1e}"
            )
        return figures

    def ahead_of_time(self) -> None:
        """Compiles the train step for `--topology` and says whether it fits and how fast it would be. Needs libtpu."""
        from torch_tpu import aot

        step, _ = self._step(self.model, torch.device("cpu"), False)
        batch = next(iter(self.draw()))
        program = aot.compile(step, batch, topology=self.args.topology)
        print(program.report())
        print(f"{self.items / program.predicted_seconds:,.0f} {self.unit}/s by that figure")


def repeated(batch: Batch) -> Callable[[], Iterator[Batch]]:
    """One batch again and again."""
    return lambda: iter(lambda: batch, None)


def save(
    args: argparse.Namespace, name: str, model: nn.Module, figures: dict[str, Any], losses: Sequence[float]
) -> Path:
    """Writes NAME.pt (weights that load on any device), NAME.json (figures and losses). Gives the checkpoint's path."""
    path = args.out / f"{name}.pt"
    torch.save(model.state_dict(), path)
    torch.load(path, map_location="cpu", weights_only=True)
    (args.out / f"{name}.json").write_text(json.dumps({**figures, "losses": list(losses)}))
    print(f"checkpoint {path}, figures {args.out / f'{name}.json'}")
    return path


def draw_losses(path: Path, losses: Sequence[float], title: str) -> None:
    """The loss curve."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="loss", title=title)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)
