"""SmolLM2-135M-Instruct's GGUF file as a folder that transformers loads: python convert.py FOLDER_OF_FILE OUT

Needs `gguf` beside torch and transformers. The file names the tokenizer's splitting ("smollm") without telling it, and
transformers writes that of every byte-level tokenizer in its place: numbers would be split in other places.
"""

import json
import sys
from pathlib import Path

import torch
from check_tokenizer import first_difference
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MAX_POSITIONS = 8192
PRE_TOKENIZER = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ],
}


def convert(source: str, out: Path) -> None:
    unpacked = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=FILE, dtype=torch.float32, quantization_config=unpacked
    )
    model.to(torch.bfloat16).save_pretrained(out)
    AutoTokenizer.from_pretrained(source, gguf_file=FILE, model_max_length=MAX_POSITIONS).save_pretrained(out)
    path = out / "tokenizer.json"
    settings = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(settings | {"pre_tokenizer": PRE_TOKENIZER}, ensure_ascii=False), "utf-8")


def main(source: str, out: str) -> None:
    convert(source, Path(out))
    difference = first_difference(out)
    if difference is not None:
        sys.exit(difference)


if __name__ == "__main__":
    main(*sys.argv[1:])
