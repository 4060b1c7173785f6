"""A tokenizer as llama.cpp knows it: byte-level BPE, with the name of the rule that splits a text before it."""

import json
from typing import Any

from temper_gpu.failures import TemperError
from temper_gpu.model.gguf_file import Value

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
# The same rule but for numbers: single digits in Qwen's, up to three in Llama 3's.
_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLITS = {_SPLIT % r"\p{N}": "qwen2", _SPLIT % r"\p{N}{1,3}": "llama-bpe"}


def tokenizer_fields(tokenizer: Any, end_token_ids: frozenset[int], vocabulary_size: int) -> dict[str, Value]:
    described: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    model = described["model"]
    if model["type"] != "BPE" or described["decoder"]["type"] != "ByteLevel":
        raise _unknown(f"is {model['type']} with the decoder {described['decoder']['type']}")
    tokens = [f"[PAD{id}]" for id in range(vocabulary_size)]
    types = [UNUSED] * vocabulary_size
    for token, id in model["vocab"].items():
        tokens[id], types[id] = token, NORMAL
    for added in described["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    prefix = "tokenizer.ggml"
    return {
        f"{prefix}.model": "gpt2",
        f"{prefix}.pre": split_name(described["pre_tokenizer"], has_merges=len(merges) > 0),
        f"{prefix}.tokens": tokens,
        f"{prefix}.token_type": types,
        f"{prefix}.merges": merges,
        **_special(tokenizer, end_token_ids, prefix),
        f"{prefix}.add_bos_token": _adds_first(tokenizer),
        **({} if tokenizer.chat_template is None else {"tokenizer.chat_template": tokenizer.chat_template}),
    }


def split_name(splitter: dict[str, Any] | None, has_merges: bool) -> str:
    """llama.cpp's name for a rule of tokenizers. Without merges a text is read byte by byte, however it is split."""
    parts = [] if splitter is None else splitter.get("pretokenizers", [splitter])
    kinds = [part["type"] for part in parts]
    if not has_merges or (kinds == ["ByteLevel"] and parts[0]["use_regex"]):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and parts[0]["individual_digits"] and parts[1]["use_regex"]:
        return "smollm"
    if kinds == ["Split", "ByteLevel"] and not parts[1]["use_regex"]:
        known = SPLITS.get(parts[0]["pattern"].get("Regex", ""))
        if known is not None:
            return known
    raise _unknown(f"splits texts by {json.dumps(splitter)[:200]}")


def _special(tokenizer: Any, end_token_ids: frozenset[int], prefix: str) -> dict[str, int]:
    """An answer may end with several tokens; llama.cpp knows two, besides those that it knows by their text."""
    ends = sorted(end_token_ids, key=lambda id: (id != tokenizer.eos_token_id, id))
    named = {"bos": tokenizer.bos_token_id, "padding": tokenizer.pad_token_id}
    named |= dict(zip(("eos", "eot"), ends, strict=False))
    return {f"{prefix}.{name}_token_id": int(id) for name, id in named.items() if id is not None}


def _adds_first(tokenizer: Any) -> bool:
    ids = tokenizer.encode("a", add_special_tokens=True)
    return tokenizer.bos_token_id is not None and ids[:1] == [tokenizer.bos_token_id]


def _unknown(why: str) -> TemperError:
    return TemperError(
        "BadConfig",
        f"--format gguf knows byte-level tokenizers of Llama 3, Qwen 2 and 3 and SmolLM 2, but this one {why}; export "
        "with --format merged, and convert that folder with llama.cpp's convert_hf_to_gguf.py",
    )
