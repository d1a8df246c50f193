"""From a family's name to a small model on the CPU with inputs that it runs on."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import io
import signal
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from . import inputs as kinds
from .randoms import HostRandoms
from .shrink import RECIPES, small_config

LARGEST = 40_000_000  # parameters; a larger model was not made small
# What most people know, for the runs that take longer.
WELL_KNOWN = frozenset(
    """
    llama gpt2 bert t5 vit mamba mixtral qwen2 qwen3 qwen3_moe mistral gemma gemma2 gemma3_text phi phi3 falcon
    opt bloom gpt_neo gpt_neox gptj codegen roberta distilbert albert electra deberta-v2 xlnet bart mbart
    pegasus mt5 whisper wav2vec2 hubert clip clip_text_model clip_vision_model siglip dinov2 swin swinv2
    convnext resnet deit beit segformer detr mobilenet_v2 mobilevit vit_mae olmo2 granite cohere starcoder2
    stablelm deepseek_v3 gpt_oss modernbert
    """.split()
)
_HEADS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_MAPPING_NAMES",
)


@dataclasses.dataclass
class Case:
    """A family ready to be compared. `recipe` is the index in RECIPES, `inputs` are CPU tensors. `model` never ran:
    copies do."""

    family: str
    config: Any
    model: nn.Module
    inputs: dict[str, Any]
    recipe: int
    causal: bool


def family_names() -> list[str]:
    """All configuration types of the installed Transformers."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return sorted(CONFIG_MAPPING_NAMES)


def model_class(family: str) -> tuple[type[nn.Module], bool]:
    """The causal language model where there is one, else the base model, else the first head that the auto classes
    list."""
    import transformers
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    rest = [
        n
        for n in sorted(dir(modeling_auto))
        if n.endswith("MAPPING_NAMES") and n not in (*_HEADS, "CONFIG_MAPPING_NAMES")
    ]
    for table in (*_HEADS, *rest):
        name = getattr(modeling_auto, table).get(family)
        if name is None:
            continue
        for each in [name] if isinstance(name, str) else list(name):
            found = getattr(transformers, each, None)
            if found is not None:
                return found, table == _HEADS[0]
    if (found := _by_config(CONFIG_MAPPING[family])) is not None:
        return found, False
    raise LookupError(f"{family}: no model takes its configuration")


def _by_config(config: type) -> type[nn.Module] | None:
    """A part of a larger model, such as its vision tower: the first model beside the configuration that takes it."""
    from transformers import PreTrainedModel

    module = importlib.import_module(config.__module__.replace(".configuration_", ".modeling_"))
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, PreTrainedModel)
        and getattr(each, "config_class", None) is config
        and "forward" in vars(each)
        and not each.__name__.endswith("PreTrainedModel")
    ]
    return min(found, key=lambda c: ("For" in c.__name__, not c.__name__.endswith("Model"))) if found else None


@contextlib.contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Ends a Python-level search that takes too long, with TimeoutError."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no small model within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(model: nn.Module, arguments: dict[str, Any]) -> Any:
    """One forward with the same random numbers wherever the model is."""
    torch.manual_seed(0)
    with HostRandoms():
        return model(**arguments)


def tensors(value: Any, most: int = 64) -> list[Tensor]:
    """All tensors of an output, caches left out."""
    found: list[Tensor] = []

    def walk(x: Any, depth: int) -> None:
        if len(found) >= most or depth > 6:
            return
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, dict):
            for k, v in x.items():
                if "past_key_values" not in str(k) and "cache" not in str(k):
                    walk(v, depth + 1)
        elif isinstance(x, (list, tuple)):
            for v in x:
                walk(v, depth + 1)

    walk(value, 0)
    return found


def _usable(out: list[Tensor]) -> str:
    floating = [t for t in out if t.is_floating_point() and t.numel()]
    if not floating:
        return "no output with numbers"
    if not all(bool(torch.isfinite(t).any()) for t in floating):
        return "an output has no finite number"
    return ""


def _of(cls: type[nn.Module], config: Any) -> Any:
    """The part of the configuration that the class takes: a language model of a larger model takes that of its text."""
    wanted = getattr(cls, "config_class", None)
    return config if wanted is None or isinstance(config, wanted) else config.get_text_config()


def _init(model: nn.Module) -> None:
    """Weights that a constructor left as they were allocated get small random numbers, and so do matrices of zeros: the
    experts of a router that is zero are all equally good, and which are chosen says nothing."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            if not p.is_floating_point() or not p.numel():
                continue
            largest = float(p.abs().max())
            if not largest <= 1e4 or (largest == 0 and p.dim() > 1):
                p.copy_(torch.randn(p.shape, generator=generator) * 0.02)


def find(family: str, seconds: int = 90) -> Case:
    """The first recipe and inputs that the family runs on. Raises RuntimeError with what each recipe said otherwise."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    said: list[str] = []
    cls, causal = model_class(family)
    make: Callable[[], Any] = CONFIG_MAPPING[family]
    with limit(seconds):
        for index, recipe in enumerate(RECIPES):
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    config = _of(cls, small_config(make, recipe))
                    with torch.device("meta"):
                        size = sum(p.numel() for p in cls(config).parameters())
                    if size > LARGEST:
                        said.append(f"{index}: {size / 1e6:.0f} M parameters")
                        continue
                    torch.manual_seed(0)
                    model = cls(_of(cls, small_config(make, recipe))).eval().float()
            except TimeoutError:
                raise
            except Exception as error:
                said.append(f"{index}: build {type(error).__name__}: {str(error)[:160]}")
                continue
            _init(model)
            fresh = copy.deepcopy(model)  # some models keep tensors of a forward, where it was
            problems = []
            for chosen in kinds.candidates(model, model.config, recipe.image):
                try:
                    with torch.no_grad():
                        problem = _usable(tensors(run(model, chosen)))
                except TimeoutError:
                    raise
                except Exception as error:
                    shapes = ",".join(f"{k}{list(getattr(v, 'shape', []))}" for k, v in chosen.items())
                    problem = f"{type(error).__name__}: {str(error)[:140]} [{shapes}]"
                if not problem:
                    return Case(family, fresh.config, fresh, chosen, index, causal)
                problems.append(problem)
            said.append(f"{index}: forward {problems[0] if problems else 'no inputs of a known kind'}")
    raise RuntimeError("; ".join(" ".join(s.split()) for s in said)[:1500])
