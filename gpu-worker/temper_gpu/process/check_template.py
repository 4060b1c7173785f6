"""python -m temper_gpu.process.check_template: whether a chat template suits a base model, before anything is started.

Without --chat-template the model's own is tried. Reads the model's tokenizer and config. Prints
one JSON object: what the template leaves out, in words, and whether it writes the day's date.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from temper_gpu.process.arguments import print_answer
from temper_gpu.process.plan import add_model, find, prompts_of, read_template


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.check_template", allow_abbrev=False, description=__doc__)
    add_model(parser)
    arguments = parser.parse_args(argv)
    return print_answer(lambda: check(arguments))


def check(arguments: argparse.Namespace) -> dict[str, Any]:
    name, template = arguments.model, read_template(arguments.chat_template)
    prompts = prompts_of(name, find(name, arguments.source).folder, template)
    return {"gaps": prompts.gaps(), "readsClock": prompts.reads_clock}


if __name__ == "__main__":
    sys.exit(main())
