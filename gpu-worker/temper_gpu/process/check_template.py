"""python -m temper_gpu.process.check_template: whether a chat template suits a base model, before anything is started.

Without --chat-template the model's own is tried. Reads the model's tokenizer and config. Prints
one JSON object: what the template leaves out, in words.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from temper_gpu.process.arguments import print_answer
from temper_gpu.process.plan import add_model, find, gaps_of, read_template


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.check_template", allow_abbrev=False, description=__doc__)
    add_model(parser)
    arguments = parser.parse_args(argv)
    return print_answer(lambda: {"gaps": check(arguments)})


def check(arguments: argparse.Namespace) -> list[str]:
    from transformers import AutoConfig, AutoTokenizer

    from temper_gpu.model.chat_templates import check_template
    from temper_gpu.model.models import explained

    name, template = arguments.model, read_template(arguments.chat_template)
    folder = find(name, arguments.source).folder
    with explained(name, folder):
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        config: Any = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    check_template(name, tokenizer, template)
    return gaps_of(name, config, tokenizer, template)


if __name__ == "__main__":
    sys.exit(main())
