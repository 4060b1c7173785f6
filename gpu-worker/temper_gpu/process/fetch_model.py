"""python -m temper_gpu.process.fetch_model: the files of a model of the Hugging Face hub or of a bucket, before
anything is started.

Prints one JSON object a line: how many bytes of how many are here, and last the commit that the name stands for, or the
hash of the bucket's listing.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from temper_gpu.failures import TemperError
from temper_gpu.process.arguments import exit_code

TELL_EVERY_S = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="temper_gpu.process.fetch_model", allow_abbrev=False, description=__doc__)
    parser.add_argument(
        "--model", required=True, metavar="NAME", help="OWNER/NAME[@REVISION] or s3/BUCKET/PREFIX[@HASH]"
    )
    arguments = parser.parse_args(argv)
    from temper_gpu.model.bucket import download_s3, parse_s3_model
    from temper_gpu.model.hub import download, now_and_then, parse_hub_model

    in_bucket, tell = parse_s3_model(arguments.model), now_and_then(print_progress, TELL_EVERY_S)
    try:
        if in_bucket is not None:
            snapshot = download_s3(in_bucket, tell)
        else:
            snapshot = download(parse_hub_model(arguments.model), tell)
    except TemperError as error:
        print(f"{error.type}: {error}", file=sys.stderr)
        return exit_code(error)
    print(json.dumps({"commit": snapshot.commit}))
    return 0


def print_progress(done: int, total: int) -> None:
    print(json.dumps({"done": done, "total": total}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
