"""The files of a model of the Hugging Face hub or of a bucket, before anything is started.

Prints one JSON object a line: how many bytes of how many are here, and last the commit that the name stands for, or the
hash of the bucket's listing.
"""

import json
from typing import Any

from temper_gpu.contract import FetchModelInput
from temper_gpu.failures import TemperError

PROGRESS_EVERY_S = 0.2


def run(work: FetchModelInput) -> dict[str, Any]:
    from temper_gpu.model.hub import throttled
    from temper_gpu.model.sources import fetch

    snapshot = fetch(work.source, throttled(print_progress, PROGRESS_EVERY_S))
    if snapshot is None:
        raise TemperError(
            "BadConfig", f"source must begin with hub: or s3://, got {work.source}; a folder needs no download"
        )
    return {"commit": snapshot.commit}


def print_progress(done: int, total: int) -> None:
    print(json.dumps({"done": done, "total": total}), flush=True)
