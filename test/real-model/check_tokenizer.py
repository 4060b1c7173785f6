"""Whether the tokenizer of a model's folder is SmolLM2's own: python check_tokenizer.py FOLDER

A tokenizer that splits otherwise would make prompts that the model has never seen, and no error. tokens.json holds ids
that others published for the hub's tokenizer or that its model sampled, and ids that its vocabulary and its rule "each
digit apart" leave no choice about. No token holds a digit beside others, so the rule shows where blanks precede one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

KNOWN = Path(__file__).parent / "tokens.json"


def first_difference(folder: str | Path) -> str | None:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for known in [known for source in json.loads(KNOWN.read_text("utf-8")).values() for known in source]:
        text = known["text"] if "text" in known else written_chat(tokenizer, known["chat"])
        ids = tokenizer.encode(text, add_special_tokens=False)
        if ids != known["ids"]:
            return f"the tokenizer must be SmolLM2's own, which writes {text!r} as {known['ids']}, got {ids}"
    return None


def written_chat(tokenizer: Any, text: str) -> str:
    if tokenizer.chat_template is None:
        return text
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )


if __name__ == "__main__":
    difference = first_difference(sys.argv[1])
    sys.exit(None if difference is None else f"{difference}; convert the model again")
