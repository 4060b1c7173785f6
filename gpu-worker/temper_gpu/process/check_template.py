"""python -m temper_gpu.process.check_template: whether a chat template suits a base model, before anything is started.

Without --chat-template the model's own is tried. Reads the model's tokenizer and config. Prints
one JSON object: what the template leaves out, in words.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import exit_code
from temper_gpu.process.plan import add_model, find, read_template


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.check_template", allow_abbrev=False, description=__doc__)
    add_model(parser)
    arguments = parser.parse_args(argv)
    try:
        print(json.dumps({"gaps": check(arguments)}))
    except TemperError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


def check(arguments: argparse.Namespace) -> list[str]:
    from transformers import AutoConfig, AutoTokenizer

    from temper_gpu.model.chat_templates import check_template
    from temper_gpu.model.models import BaseModel, explained
    from temper_gpu.server.prompts import Prompts

    name, template = arguments.model, read_template(arguments.chat_template)
    folder = find(name, arguments.source).folder
    with explained(name, folder):
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        config: Any = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    check_template(name, tokenizer, template)
    return Prompts(BaseModel(name, config, {}, tokenizer), given_template=template).gaps()


if __name__ == "__main__":
    sys.exit(main())
