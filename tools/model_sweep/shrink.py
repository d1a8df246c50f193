"""Small configurations: integers are reduced by their names, lists by their meaning, sub-configurations likewise."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

VOCAB = 128
HIDDEN = 64


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One way to make a configuration small. A family's first recipe whose model runs on the CPU is the one that is
    compared."""

    image: int = 64  # pixels a side
    patch: int = 16  # the largest patch
    layers: int = 2
    rebuild: bool = True  # through the constructor, which derives fields from others; else attributes are set
    keep: str = ""  # names that stay as they are (regular expression)
    head_dim: int = 16
    grouped: bool = True  # fewer key and value heads than query heads


RECIPES = (
    Recipe(),
    Recipe(grouped=False),
    Recipe(rebuild=False),
    Recipe(layers=4),
    Recipe(
        keep="channels|embed_dims|embedding_size|hidden_sizes|widths|stem|head_dim|sample|codebook|upsampl|downsampl|depths"
    ),
    Recipe(rebuild=False, keep="depths|layers|channels|hidden_sizes|dims|layer_types"),
    Recipe(image=224, patch=64),
    Recipe(keep="layers|layer_types|depths|depth$"),
    Recipe(keep="size|dim|width|channels|d_model|heads", rebuild=False),
    Recipe(keep="size|dim|width|channels|d_model|heads|layers|depth", rebuild=False),
)

# (name, what it becomes). The first that matches decides; a value that is smaller already stays.
_INTEGERS: tuple[tuple[str, int], ...] = (
    (r"vocab_size_per_layer|hidden_size_per_layer", 16),
    (r"vocab(ulary)?_size|^n_vocab$|num_text_tokens|codebook_size|^n_tokens$|num_embeddings$", VOCAB),
    (r"experts_per_tok|num_selected_experts|moe_topk|top_k_experts|moe_k$|topk_experts|moe_top_k", 2),
    (r"num_shared_experts|n_shared_experts", 1),
    (r"^n_group$|topk_group|n_expert_groups?$|num_expert_group", 1),
    (r"experts|num_local_experts", 4),
    (r"first_k_dense|num_dense_layers|moe_layer_start|moe_layer_freq|decoder_sparse_step", 1),
    (r"key_value_heads|kv_heads|num_kv|multi_query_group_num|n_head_kv", 2),
    (r"rotary_dim$", 8),
    (r"upsample_groups", HIDDEN),
    (r"qk_rope_head_dim|qk_nope_head_dim|v_head_dim|kv_channels|attention_head_dim|head_dim|head_size|d_kv|qk_dim", 16),
    (r"qk_head_dim", 32),
    (r"lora_rank|low_rank|_rank$|rank_dim", 16),
    (r"n_kernel|conv_kernel|kernel_size|stride|dilation|num_conv_pos|patch_stride", 0),
    (r"num_time_mix|n_layer_kv|num_kv_shared|nextn|mtp", 0),
    (r"(^|_)(n|num)_(\w*_)?(hidden_)?(layers?|blocks?|stages)$|layers$|num_blocks|num_layers|n_layer|(^|_)depth$", 2),
    (r"(attention_heads|num_heads|n_heads?|nhead|num_\w*heads|_heads)$", 4),
    (r"ffn|intermediate|d_ff|feedforward|mlp_dim|ff_dim|n_inner|inner_dim|mlp_hidden|feed_forward_dim", 2 * HIDDEN),
    (r"image_size|img_size|^input_size$|crop_size|max_size|tile_size|resolution", -1),
    (r"patch_size", -2),
    (r"max_position|n_positions|max_seq|n_ctx|max_length|max_source|max_target|context_length|seq_len", 128),
    (r"num_positions", 128),
    (r"sliding_window|attention_chunk_size|local_attention|^window_size$|chunk_size|block_size", 16),
    (r"num_quer|num_latents|query_length|queries|num_object|num_proposals|num_denoising|num_feature_levels", 8),
    (r"num_frames", 4),
    (r"num_labels|num_classes", 4),
    (r"state_size|d_state|ssm_state", 16),
    (r"hidden_size|d_model|n_embd|hidden_dim|embed_dim|embedding_dim|embedding_size|projection_dim|^dim$", HIDDEN),
    (r"_dim$|_width$|^width$|channels$|hidden$|d_latents|_size$|d_inner|_features$", HIDDEN),
)  # fmt: skip
_EXACT_CHANNELS = re.compile(
    r"^(num_channels|in_channels|in_chans|image_channels|num_input_channels|audio_channels|n_channels|num_mel_bins|input_channels"
    r"|prediction_length|hop_size|hop_length|n_fft|win_length|pool_size|type_vocab_size|group_size|resolution|merge_size"
    r"|spatial_merge_size|temporal_patch_size|tubelet_size|num_groups|input_size|sampling_rate|sample_rate|downsampling_ratio)$"
)
# What a constructor leaves open and its model then needs.
_MISSING = {"prediction_length": 8, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
# (number of heads, size of a head, inner width as a multiple of the hidden size)
_STATE_SPACES = (
    ("mamba_n_heads", "mamba_d_head", "mamba_expand"),
    ("n_mamba_heads", "mamba_headdim", "mamba_expand"),
    ("mamba_num_heads", "mamba_head_dim", "expand"),
    ("num_heads", "head_dim", "expand"),
)
_TOKEN = re.compile(r"(token_id|token_index|token_ids|_token)s?$")


def _integer(name: str, value: int, recipe: Recipe) -> int:
    if _EXACT_CHANNELS.search(name):
        return value
    for pattern, small in _INTEGERS:
        if re.search(pattern, name):
            small = {-1: recipe.image, -2: recipe.patch}.get(small, small)
            if small == 0:
                return value
            if small == 2 and re.search(r"layer|depth|block|stage", name):
                small = recipe.layers
            if small == 16 and "head_dim" in name:
                small = recipe.head_dim
            return min(value, small)
    return value


def _sizes(name: str, values: Sequence[Any], recipe: Recipe) -> list[Any]:
    """A list of integers: one entry a stage, so the length stays."""
    if re.search(r"depths|num_blocks|layers|num_layers|stage_num_blocks|repeats", name):
        return [min(v, 1) for v in values]
    if re.search(r"image_size|img_size|crop|resolution", name):
        return [min(v, recipe.image) for v in values]
    if re.search(r"heads", name):
        return [min(v, 4) for v in values]
    if re.search(r"hidden|dims|channels|widths|sizes|embed|filters|planes|dim$", name) and not re.search(
        r"kernel|patch|stride|window|pool", name
    ):
        most = max(values)
        return [v if v <= 16 else max(16, v * HIDDEN // most // 16 * 16) if most > HIDDEN else v for v in values]
    return list(values)


class Shrinker:
    """Makes one configuration small; counts the special tokens so that each gets an id of its own."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.tokens: dict[int, int] = {}

    def _token(self, value: int) -> int:
        if value < 0 or value < VOCAB - 28:
            return value
        return self.tokens.setdefault(value, VOCAB - 1 - len(self.tokens) % 28)

    @staticmethod
    def _state_space(fields: dict[str, Any], changed: dict[str, Any]) -> None:
        """Heads of a state space model: their number times their size is the inner width."""
        for heads, size, expand in _STATE_SPACES:
            if all(isinstance(fields.get(name), (int, float)) for name in (heads, expand)) and size in fields:
                inner = int(fields[expand] * fields.get("hidden_size", HIDDEN))
                changed[size], changed[heads] = 16, inner // 16
                if isinstance(fields.get("mamba_d_ssm"), int):
                    changed["mamba_d_ssm"] = inner
                return

    def _layer_types(self, values: list[str]) -> list[str]:
        """One of each kind, at least `layers`, in the order of their first places."""
        kinds = list(dict.fromkeys(values))
        while len(kinds) < self.recipe.layers:
            kinds.append(values[len(kinds) % len(values)])
        return kinds

    def values(self, fields: dict[str, Any]) -> dict[str, Any]:
        """New values of those fields that change."""
        changed: dict[str, Any] = {n: v for n, v in _MISSING.items() if n in fields and fields[n] is None}
        recipe = self.recipe
        kinds = next(
            (v for k, v in fields.items() if k in ("layer_types", "layers_block_type") and isinstance(v, list) and v),
            None,
        )
        for name, value in fields.items():
            if name.startswith("_") or (
                recipe.keep and re.search(recipe.keep, name) and not re.search("vocab|token", name)
            ):
                continue
            if isinstance(value, bool) or value is None:
                continue
            if isinstance(value, int):
                new: Any = self._token(value) if _TOKEN.search(name) else _integer(name, value, recipe)
            elif isinstance(value, (list, tuple)) and value and all(type(v) is int for v in value):
                new = [self._token(v) for v in value] if _TOKEN.search(name) else _sizes(name, value, recipe)
                new = type(value)(new)
            elif name in ("layer_types", "layers_block_type") and isinstance(value, list) and value:
                new = self._layer_types(value)
            elif name == "mlp_layer_types" and isinstance(value, list) and value:
                new = self._layer_types(value)
            else:
                continue
            if new != value:
                changed[name] = new
        if "num_key_value_heads" in fields and (fields.get("kv_lora_rank") or not recipe.grouped):
            # The former makes keys and values for every head.
            changed["num_key_value_heads"] = changed.get("num_attention_heads", fields.get("num_attention_heads"))
        if fields.get("spatial_merge_size"):  # a window is some patches wide, merged
            changed.pop("window_size", None)
        self._state_space({**fields, **changed}, changed)
        if kinds is not None and "layers" not in recipe.keep:
            count = len(self._layer_types(kinds))
            for name in ("num_hidden_layers", "n_layers", "num_layers"):
                if isinstance(fields.get(name), int):
                    changed[name] = count
            if isinstance(fields.get("mlp_layer_types"), list):
                changed["mlp_layer_types"] = (list(dict.fromkeys(fields["mlp_layer_types"])) * count)[-count:]
        return changed


def _children(config: Any) -> dict[str, Any]:
    from transformers import PreTrainedConfig

    return {k: v for k, v in vars(config).items() if isinstance(v, PreTrainedConfig)}


def _apply(config: Any, shrinker: Shrinker) -> None:
    for name, child in _children(config).items():
        if child.model_type == "timm_backbone":
            setattr(config, name, _own_backbone(child))
        else:
            _apply(child, shrinker)
    for name, value in shrinker.values(dict(vars(config))).items():
        try:
            setattr(config, name, value)
        except Exception:  # noqa: S112, BLE001 - a property without a setter is derived from others
            continue


def _fields(config: Any) -> dict[str, Any]:
    from transformers import PreTrainedConfig

    base = set(vars(PreTrainedConfig()))
    given = {
        k: v for k, v in vars(config).items() if not k.startswith("_") and (k not in base or k.endswith("token_id"))
    }
    for name in ("model_type", "transformers_version", "rope_parameters"):
        given.pop(name, None)
    return given


def _own_backbone(config: Any) -> Any:
    """A ResNet of Transformers in the place of a backbone that needs the timm package, with as many outputs."""
    from transformers import ResNetConfig

    outputs = len(getattr(config, "out_indices", None) or [1])
    names = [f"stage{i}" for i in range(5 - max(1, min(outputs, 4)), 5)]
    return ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1], layer_type="basic", out_features=names
    )


def _rebuild(config: Any, shrinker: Shrinker) -> Any:
    if config.model_type == "timm_backbone":
        return _own_backbone(config)
    children = {k: _rebuild(v, shrinker) for k, v in _children(config).items()}
    fields = {k: v for k, v in _fields(config).items() if k not in children}
    given = {**fields, **shrinker.values(fields)}
    # What the constructor derives from sizes must be derived again.
    for name in ("layer_types", "mlp_layer_types", "out_features", "out_indices", "stage_names"):
        if name in given and not (name.endswith("layer_types")):
            given.pop(name)
    return type(config)(**given, **children)


def small_config(make: Callable[[], Any], recipe: Recipe) -> Any:
    """A small configuration of the kind that `make` gives. Raises what the configuration's own checks raise."""
    config = make()
    shrinker = Shrinker(recipe)
    if recipe.rebuild:
        config = _rebuild(config, shrinker)
    else:
        _apply(config, shrinker)
    _complete(config)
    return config


def _complete(config: Any) -> None:
    """Fields that follow from others but that no constructor derives."""
    for child in _children(config).values():
        _complete(child)
    if not hasattr(config, "pad_token_id"):
        config.pad_token_id = None
    rope = getattr(config, "rope_parameters", None)
    if not isinstance(rope, dict):
        return
    if "rope_theta" in rope and rope["rope_theta"] is None:
        rope["rope_theta"] = 10000.0
    if isinstance(rope.get("mrope_section"), list) and getattr(config, "num_attention_heads", None):
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        half = int(size * (rope.get("partial_rotary_factor") or 1.0)) // 2
        rope["mrope_section"] = [half // 4, (half - half // 4) // 2, half - half // 4 - (half - half // 4) // 2]
