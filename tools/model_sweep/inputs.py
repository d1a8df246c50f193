"""Inputs by the kind of a model: what its `forward` asks for, in the shapes that its configuration implies."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

BATCH = 2
LENGTH = 16
Alternatives = list[Any]


def setting(config: Any, *names: str, default: Any = None) -> Any:
    """The first of these settings that is there, in the configuration or one of its parts (breadth first)."""
    from transformers import PreTrainedConfig

    level = [config]
    while level:
        for part in level:
            for name in names:
                value = vars(part).get(name)
                if value is not None:
                    return value
        level = [v for part in level for v in vars(part).values() if isinstance(v, PreTrainedConfig)]
    return default


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, (list, tuple)):
        return int(value[0]), int(value[-1])
    if isinstance(value, dict):
        return int(value.get("height", 64)), int(value.get("width", 64))
    return int(value), int(value)


class Maker:
    """Makes each input by its name. Every name gives alternatives, the likeliest first."""

    def __init__(self, config: Any, image: int) -> None:
        self.config = config
        self.generator = torch.Generator().manual_seed(0)
        self.image = _pair(setting(config, "image_size", "img_size", default=image))
        if min(self.image) < 8 or max(self.image) > 512:
            self.image = (image, image)
        channels = setting(config, "num_channels", "in_channels", "in_chans", "image_channels", default=3)
        self.channels = channels if isinstance(channels, int) and channels <= 8 else 3

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, max(high, low + 1), shape, generator=self.generator)

    def _vocab(self) -> int:
        found = setting(self.config, "vocab_size", "n_vocab", "vocabulary_size", default=128)
        return min(found, 100) if isinstance(found, int) else 100

    def input_ids(self) -> Alternatives:
        books = setting(self.config, "num_codebooks", "num_quantizers", "n_codes_total", default=4)
        v = self._vocab()
        ids = self.integers(3, v, BATCH, LENGTH)
        return [ids, self.integers(3, v, BATCH, LENGTH, books), self.integers(3, v, BATCH * books, LENGTH)]

    def pixel_values(self) -> Alternatives:
        h, w = self.image
        c = self.channels
        frames = setting(self.config, "num_frames", "frames_per_clip", "vid_num_frames", default=4)
        frames = frames if isinstance(frames, int) else 4
        patch, _ = _pair(setting(self.config, "patch_size", default=16))
        temporal = setting(self.config, "temporal_patch_size", default=2)
        temporal = temporal if isinstance(temporal, int) else 2
        count = max(1, h // patch) * max(1, w // patch)
        return [
            self.normal(BATCH, c, h, w),
            self.normal(1, frames, c, h, w),
            self.normal(1, 2, c, h, w),
            self.normal(count, c * temporal * patch * patch),
            self.normal(BATCH, count, c * patch * patch),
            self.normal(count, c, temporal, patch, patch),
            self.normal(count, c, patch, patch),
            self.normal(count, c * patch * patch),
            self.normal(1, c, frames, h, w),
            self.normal(1, 1, c, h, w),
        ]

    def grid(self) -> Tensor:
        h, w = self.image
        patch, _ = _pair(setting(self.config, "patch_size", default=16))
        return torch.tensor([[1, max(1, h // patch), max(1, w // patch)]])

    def waves(self) -> Alternatives:
        mel = setting(self.config, "num_mel_bins", "feat_dim", "n_mels", default=80)
        frames = setting(self.config, "max_length", "spec_size", default=128)
        return [
            self.normal(BATCH, 4000),
            self.normal(BATCH, 1, 4000),
            self.normal(BATCH, frames if isinstance(frames, int) else 128, mel),
            self.normal(BATCH, 1, 128, mel),
            self.normal(1, 1, 24000),
        ]

    def spectrogram(self) -> Alternatives:
        mel = setting(
            self.config,
            "num_mel_bins",
            "feature_projection_input_dim",
            "input_feat_per_channel",
            "n_mels",
            "input_dim",
            "mel_bins",
            "feature_size",
            "input_size",
            default=80,
        )
        mel = mel if isinstance(mel, int) else 80
        positions = setting(self.config, "max_source_positions", default=64)
        positions = positions if isinstance(positions, int) else 64
        lengths = dict.fromkeys((2 * positions, 128, 200))
        shapes = [shape for t in lengths for shape in ((BATCH, mel, t), (BATCH, t, mel))]
        clap = setting(self.config, "spec_size", default=256)
        return [*(self.normal(*s) for s in shapes), self.normal(BATCH, 1, clap, 64), self.normal(1, 1, 128, mel)]

    def make(self, name: str) -> Alternatives:
        """Alternatives for the argument, or none when its kind is unknown."""
        v = self._vocab()
        hidden = setting(self.config, "hidden_size", "d_model", "n_embd", "hidden_dim", "dim", default=64)
        h, w = self.image
        table: dict[str, Callable[[], Alternatives]] = {
            "input_ids": self.input_ids,
            "qformer_input_ids": lambda: [self.integers(3, v, BATCH, LENGTH)],
            "context": lambda: [self.normal(BATCH, LENGTH, hidden)],
            "decoder_input_ids": lambda: [self.integers(3, v, BATCH, LENGTH)],
            "pixel_values": self.pixel_values,
            "pixel_values_videos": lambda: [self.normal(1, 4, self.channels, h, w), *self.pixel_values()],
            "pixel_values_video": lambda: [self.normal(1, 4, self.channels, h, w)],
            "images": self.pixel_values,
            "image": lambda: [self.normal(BATCH, self.channels, h, w)],
            "prompt_pixel_values": lambda: [self.normal(BATCH, self.channels, h, w)],
            "high_res_pixel_values": lambda: [self.normal(BATCH, self.channels, h, w)],
            "pixel_mask": lambda: [torch.ones(BATCH, h, w, dtype=torch.long)],
            "input_values": self.waves,
            "audio_values": self.waves,
            "input_features": self.spectrogram,
            "audio_features": self.spectrogram,
            "spectrogram": self.spectrogram,
            "flattened_patches": lambda: [self._flattened()],
            "attention_mask": lambda: [torch.ones(BATCH, LENGTH, dtype=torch.long)],
            "input_features_mask": lambda: [torch.ones(BATCH, 128, dtype=torch.long)],
            "padding_mask": lambda: [torch.ones(BATCH, 1, 4000, dtype=torch.long)],
            "bbox": lambda: [self._boxes()],
            "image_bbox": lambda: [self._boxes()],
            "task_inputs": lambda: [self.integers(3, v, BATCH, LENGTH)],
            "hidden_states": lambda: [
                *self.pixel_values()[2:3],
                self.normal(BATCH, LENGTH, hidden),
                *self.pixel_values(),
            ],
            "inputs_embeds": lambda: [self.normal(BATCH, LENGTH, hidden)],
            "query_embeds": lambda: [self.normal(BATCH, 8, hidden)],
            "encoder_hidden_states": lambda: [self.normal(BATCH, LENGTH, hidden)],
            "grid_thw": lambda: [self.grid()],
            "image_grid_thw": lambda: [self.grid()],
            "image_grid_hw": lambda: [self.grid()[:, 1:]],
            "grid_hws": lambda: [self.grid()[:, 1:]],
            "target_sizes": lambda: [self.grid()[:, 1:]],
            "spatial_shapes": lambda: [self.grid()[:, 1:].repeat(BATCH, 1)],
            "pixel_attention_mask": lambda: [torch.ones(BATCH, int(self.grid().prod()), dtype=torch.long)],
            "visual_feats": lambda: [self.normal(BATCH, 4, setting(self.config, "visual_feat_dim", default=2048))],
            "visual_pos": lambda: [self.normal(BATCH, 4, 4)],
            "pixel_position_ids": lambda: [self._positions()],
            "image_position_ids": lambda: [self._positions()],
            "codes": lambda: [
                self.integers(0, v, BATCH, setting(self.config, "n_codebooks", "num_quantizers", default=4), LENGTH)
            ],
            "audio_codes": lambda: [
                self.integers(0, v, BATCH, setting(self.config, "num_quantizers", default=4), LENGTH)
            ],
            "noise_sequence": lambda: [self.normal(1, 16, setting(self.config, "model_in_channels", default=64))],
            "input_points": lambda: [torch.full((BATCH, 1, 1, 2), 20.0)],
            "labels": lambda: [self.integers(3, v, BATCH, LENGTH)],
            "keypoints": lambda: [torch.rand(1, 2, 8, 2, generator=self.generator)],
            "descriptors": lambda: [self.normal(1, 2, 8, setting(self.config, "descriptor_dim", default=64))],
            "states": lambda: [self.normal(BATCH, 4, setting(self.config, "state_dim", default=17))],
            "actions": lambda: [self.normal(BATCH, 4, setting(self.config, "act_dim", default=4))],
            "rewards": lambda: [self.normal(BATCH, 4, 1)],
            "returns_to_go": lambda: [self.normal(BATCH, 4, 1)],
            "timesteps": lambda: [torch.arange(4).repeat(BATCH, 1)],
            "inputs": lambda: [
                self.normal(BATCH, LENGTH, setting(self.config, "d_model", default=64)),
                self.integers(3, v, BATCH, LENGTH),
            ],
        }
        if name in table:
            return table[name]()
        return self._series(name)

    def _series(self, name: str) -> Alternatives:
        context = setting(self.config, "context_length", default=32)
        ahead = setting(self.config, "prediction_length", "horizon_length", default=8)
        lags = setting(self.config, "lags_sequence", default=[0])
        many = setting(self.config, "num_input_channels", "input_size", default=1)
        past = context + max(lags)
        features = setting(self.config, "num_time_features", default=0)
        one = many == 1
        table: dict[str, Callable[[], Alternatives]] = {
            "past_values": lambda: [
                self.normal(BATCH, past) if one else self.normal(BATCH, past, many),
                self.normal(BATCH, past, many),
                [self.normal(past) for _ in range(BATCH)],
            ],
            "past_time_features": lambda: [self.normal(BATCH, past, features)],
            "past_observed_mask": lambda: [torch.ones(BATCH, past) if one else torch.ones(BATCH, past, many)],
            "past_values_padding": lambda: [torch.zeros(BATCH, past, dtype=torch.long)],
            "future_values": lambda: [self.normal(BATCH, ahead) if one else self.normal(BATCH, ahead, many)],
            "future_time_features": lambda: [self.normal(BATCH, ahead, features)],
            "freq": lambda: [torch.zeros(BATCH, 1, dtype=torch.long)],
        }
        return table[name]() if name in table else []

    def _positions(self) -> Tensor:
        _, rows, columns = self.grid()[0].tolist()
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        return torch.stack([x.flatten(), y.flatten()], -1).repeat(BATCH, 1, 1)

    def _boxes(self) -> Tensor:
        corner = self.integers(0, 50, BATCH, LENGTH, 2)
        return torch.cat([corner, corner + self.integers(1, 50, BATCH, LENGTH, 2)], -1)

    def _flattened(self) -> Tensor:
        width = setting(self.config, "patch_embed_hidden_size", default=768)
        place = torch.arange(1, LENGTH + 1).reshape(1, LENGTH, 1).repeat(BATCH, 1, 2).float()
        return torch.cat([place, self.normal(BATCH, LENGTH, width)], -1)


_TOGETHER = (
    ("input_ids", "pixel_values"),
    ("input_ids", "input_features"),
    ("input_ids", "bbox"),
    ("input_ids", "bbox", "pixel_values"),
    ("input_ids", "bbox", "image"),
    ("pixel_values", "grid_thw"),
    ("pixel_values", "image_grid_thw"),
    ("pixel_values", "pixel_position_ids"),
    ("pixel_values", "target_sizes"),
    ("pixel_values", "pixel_attention_mask", "spatial_shapes"),
    ("input_values", "input_ids"),
    ("pixel_values", "input_points"),
    ("input_ids", "visual_feats", "visual_pos"),
    ("input_features", "decoder_input_ids"),
    ("pixel_values", "decoder_input_ids"),
    ("pixel_values", "task_inputs"),
    ("query_embeds", "encoder_hidden_states"),
    ("states", "actions", "rewards", "returns_to_go", "timesteps"),
    ("inputs",),
    ("input_ids",),
    ("pixel_values",),
    ("input_features",),
    ("input_values",),
    ("inputs_embeds",),
    ("hidden_states",),
    ("pixel_values_videos",),
)


def candidates(model: nn.Module, config: Any, image: int, most: int = 30) -> Iterator[dict[str, Any]]:
    """Sets of arguments to try, the likeliest first."""
    parameters = inspect.signature(model.forward).parameters
    names = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = [n for n in names if parameters[n].default is inspect.Parameter.empty]
    main = getattr(model, "main_input_name", "input_ids")
    first = [main] if isinstance(main, str) and main in names else []
    both = list(dict.fromkeys([*required, *first]))
    sets: list[list[str]] = []
    encoder_decoder = bool(getattr(config, "is_encoder_decoder", False)) or "decoder_input_ids" in names
    if encoder_decoder and "decoder_input_ids" in names:
        sets.append([*both, "decoder_input_ids"])
    for together in _TOGETHER[:5]:
        if set(together) <= set(names) and set(both) & set(together):
            sets.append(list(dict.fromkeys([*both, *together])))
    if both:
        sets.append(both)
    sets += [list(dict.fromkeys([*required, *t])) for t in _TOGETHER if set(t) <= set(names)]
    seen: set[tuple[str, ...]] = set()
    count = 0
    for chosen in sets:
        key = tuple(sorted(chosen))
        if key in seen:
            continue
        seen.add(key)
        maker = Maker(config, image)
        options = [maker.make(name) for name in chosen]
        if not all(options):
            continue
        limit = max(1, min(10, most - count))
        ranked = sorted(itertools.product(*(range(len(o)) for o in options)), key=sum)
        for picks in itertools.islice(ranked, min(limit, math.prod(len(o) for o in options))):
            count += 1
            yield {name: o[i] for name, o, i in zip(chosen, options, picks, strict=True)}
