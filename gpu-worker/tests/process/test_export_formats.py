"""Files for llama.cpp and mlx-lm, read as these read them: by the formats' published descriptions."""

import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer

from temper_gpu.failures import TemperError
from temper_gpu.model.explanations import only_modules
from temper_gpu.model.gguf_file import BLOCK
from temper_gpu.model.gguf_model import llama3_factors
from temper_gpu.model.gguf_tokenizer import split_name
from temper_gpu.model.lora import Adapter
from temper_gpu.model.mlx_adapter import mlx_files
from tests.process.test_export import Exporter, Make, complaint, make

__all__ = ["make"]

SCALARS = {4: "<I", 5: "<i", 6: "<f", 7: "<?"}


class Gguf:
    """https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, from the front to the end."""

    def __init__(self, file: Path) -> None:
        self._data, self._at = file.read_bytes(), 4
        assert self._data[:4] == b"GGUF"
        version, num_tensors, num_fields = self._read("<IQQ")
        assert version == 3
        self.fields = {self._string(): self._value(*self._read("<I")) for _ in range(num_fields)}
        infos = [self._info() for _ in range(num_tensors)]
        start = -(-self._at // 32) * 32
        self.tensors = {name: self._tensor(shape, kind, start + offset) for name, shape, kind, offset in infos}
        self.types = {name: kind for name, _, kind, _ in infos}

    def _read(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def _string(self) -> str:
        (length,) = self._read("<Q")
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _value(self, kind: int) -> Any:
        if kind == 8:
            return self._string()
        if kind == 9:
            item, count = self._read("<IQ")
            return [self._value(item) for _ in range(count)]
        return self._read(SCALARS[kind])[0]

    def _info(self) -> tuple[str, tuple[int, ...], int, int]:
        name, (num_dimensions,) = self._string(), self._read("<I")
        shape = tuple(reversed(self._read(f"<{num_dimensions}Q")))
        return name, shape, *self._read("<IQ")

    def _tensor(self, shape: tuple[int, ...], kind: int, offset: int) -> torch.Tensor:
        assert offset % 32 == 0
        count = int(np.prod(shape))
        if kind == 8:
            blocks = np.frombuffer(self._data, np.dtype([("d", "<f2"), ("q", "i1", BLOCK)]), count // BLOCK, offset)
            found = blocks["d"].astype(np.float32)[:, None] * blocks["q"].astype(np.float32)
        else:
            found = np.frombuffer(self._data, {0: "<f4", 1: "<f2"}[kind], count, offset).astype(np.float32)
        return torch.from_numpy(found.reshape(shape).copy())


def written(exporter: Exporter, **fields: Any) -> Gguf:
    assert exporter.written(format="gguf", **fields) == 0
    assert [file.name for file in exporter.folder.iterdir()] == ["model.gguf"]
    return Gguf(exporter.folder / "model.gguf")


def merged_weights(exporter: Exporter) -> dict[str, torch.Tensor]:
    whole = exporter.folder.with_name("whole")
    whole.mkdir()
    assert exporter.written(folder=str(whole)) == 0
    return load_file(whole / "model.safetensors")


def test_a_gguf_file_holds_the_merged_weights_and_what_the_model_is(make: Make):
    exporter = make()
    weights, file = merged_weights(exporter), written(exporter)
    assert torch.equal(file.tensors["token_embd.weight"], weights["model.embed_tokens.weight"])
    assert torch.equal(file.tensors["output.weight"], weights["lm_head.weight"])
    assert torch.equal(file.tensors["blk.1.ffn_down.weight"], weights["model.layers.1.mlp.down_proj.weight"])
    assert torch.equal(file.tensors["blk.0.attn_q.bias"], weights["model.layers.0.self_attn.q_proj.bias"])
    assert len(file.tensors) == len(weights)
    about = file.fields
    assert (about["general.architecture"], about["qwen2.block_count"], about["qwen2.attention.head_count"]) == (
        "qwen2",
        exporter.base.config.num_hidden_layers,
        exporter.base.config.num_attention_heads,
    )
    assert about["temper.adapter_sha256"] == exporter.adapter.sha256
    tokenizer = AutoTokenizer.from_pretrained(exporter.source)
    assert about["tokenizer.chat_template"] == tokenizer.chat_template
    assert about["tokenizer.ggml.tokens"][261] == "<|end|>"
    assert (about["tokenizer.ggml.token_type"][261], about["tokenizer.ggml.eos_token_id"]) == (3, 261)


def test_the_rows_of_llamas_heads_are_where_llama_cpp_rotates_them(make: Make):
    """Neighbours are rotated together there: the first halves of a head's rows and the second ones alternate."""
    exporter = make("llama")
    weights, file = merged_weights(exporter), written(exporter)
    size = exporter.base.config.hidden_size // exporter.base.config.num_attention_heads
    for theirs, ours in (("attn_q", "q_proj"), ("attn_k", "k_proj")):
        found = file.tensors[f"blk.0.{theirs}.weight"]
        wanted = weights[f"model.layers.0.self_attn.{ours}.weight"]
        for head in range(0, len(wanted), size):
            rows = [head + half * size // 2 + index for index in range(size // 2) for half in (0, 1)]
            assert torch.equal(found[head : head + size], wanted[rows])
    assert torch.equal(file.tensors["blk.0.attn_v.weight"], weights["model.layers.0.self_attn.v_proj.weight"])


def test_a_tied_head_is_left_out_and_norms_of_heads_are_named(make: Make):
    exporter = make("qwen3")
    file = written(exporter)
    assert "output.weight" not in file.tensors
    assert file.tensors["blk.0.attn_q_norm.weight"].shape == (exporter.base.config.head_dim,)
    assert file.fields["qwen3.attention.key_length"] == exporter.base.config.head_dim


def test_weights_in_8_bits_are_near_the_merged_ones_and_vectors_stay_whole(make: Make):
    exporter = make()
    weights, file = merged_weights(exporter), written(exporter, quantize="q8_0")
    found, wanted = file.tensors["blk.0.ffn_up.weight"], weights["model.layers.0.mlp.up_proj.weight"]
    assert file.types["blk.0.ffn_up.weight"] == 8
    assert file.types["output_norm.weight"] == 0
    largest = wanted.reshape(-1, BLOCK).abs().amax(1)
    # Half a step, and the rounding of the block's own scale.
    assert ((found - wanted).reshape(-1, BLOCK).abs().amax(1) <= largest / 127 * 0.57).all()


def test_what_llama_cpp_would_compute_otherwise_is_refused(make: Make, capsys: pytest.CaptureFixture[str]):
    code, told = complaint(make("mixture"), capsys, format="gguf")
    assert code == 2
    assert (
        "of the types llama, mistral, qwen2, qwen3 with full attention, but this one is of the type qwen3_moe" in told
    )


def test_splits_of_tokenizers_are_known_by_what_they_do():
    bytes_alone = {"type": "ByteLevel", "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": r"\w+"}}
    digits = {"type": "Digits", "individual_digits": True}
    by_regex = {"type": "ByteLevel", "use_regex": True}
    assert split_name(bytes_alone, has_merges=False) == "gpt-2"
    assert split_name({"type": "Sequence", "pretokenizers": [digits, by_regex]}, has_merges=True) == "smollm"
    with pytest.raises(TemperError, match=r"splits texts by .*convert_hf_to_gguf.py"):
        split_name({"type": "Sequence", "pretokenizers": [split, bytes_alone]}, has_merges=True)


def test_low_frequencies_of_llama_3_are_divided_by_its_factor():
    rope = {"rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rope["original_max_position_embeddings"] = 8192

    factors = llama3_factors(SimpleNamespace(head_dim=128, num_attention_heads=32, rope_parameters=rope))
    assert (len(factors), factors[0], factors[-1]) == (64, 1.0, 8.0)
    assert sorted(factors) == factors


def test_an_adapter_for_mlx_has_its_matrices_the_other_way_round(make: Make):
    exporter = make()
    adapter = exporter.adapter.read()
    assert exporter.written(format="mlx") == 0
    config = json.loads((exporter.folder / "adapter_config.json").read_text())
    written = load_file(exporter.folder / "adapters.safetensors")
    module = "model.layers.0.mlp.down_proj"
    for part in "AB":
        theirs = written[f"{module}.lora_{part.lower()}"]
        assert torch.equal(theirs, adapter.tensors[f"base_model.model.{module}.lora_{part}.weight"].T)
    assert len(written) == len(adapter.tensors)
    assert (config["fine_tune_type"], config["num_layers"]) == ("lora", exporter.base.config.num_hidden_layers)
    assert config["lora_parameters"] | {"keys": 0} == {"rank": 4, "scale": 2.0, "dropout": 0.0, "keys": 0}
    assert "self_attn.q_proj" in config["lora_parameters"]["keys"]


def test_layers_that_are_not_all_adapted_are_named_one_by_one(make: Make):
    adapter = make().adapter.read()
    assert isinstance(adapter, Adapter)
    some = only_modules(adapter, ["model.layers.1.mlp.up_proj"])
    config = json.loads(mlx_files(some, 2)["adapter_config.json"])
    assert config["lora_parameters"]["keys"] == ["model.layers.1.mlp.up_proj"]
