"""The pocket model's tokenizer: one token for each byte (so any text can be encoded), eight for the conversation."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, END = "<|endoftext|>", "<|end|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")
# These two are ordinary tokens, not special ones: skip_special_tokens has to keep them for the tool parser.
TOOL_CALL = ("<tool_call>", "</tool_call>")

CHAT_TEMPLATE = Path(__file__).with_name("chat_template.jinja")


def build_tokenizer() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE(vocab=byte_vocabulary(), merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in (PAD, *ROLES, END)])
    backend.add_tokens([AddedToken(token, special=False, normalized=False) for token in TOOL_CALL])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=END,
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE.read_text(encoding="utf-8"),
    )


def byte_vocabulary() -> dict[str, int]:
    """Token id = byte value. ByteLevel writes a byte as a printable character: itself, or the next from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    stand_ins = iter(range(256, 512))
    return {chr(byte if byte in printable else next(stand_ins)): byte for byte in range(256)}


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    # transformers 5 writes its own class name, which version 4 (and what builds on it) does not know.
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(settings, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
