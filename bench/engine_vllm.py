"""vLLM in `npm run bench -- engine`: a program of vLLM's own Python, which speaks as engine_peers.py does.

Its engine without its HTTP server, with its defaults: prefix cache, chunked prefill. It answers token ids for token
ids, with the log-probability of each, and makes no text of them.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from vllm import SamplingParams, TokensPrompt
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

CACHE_BYTES = 4 << 30
# The embedded engine decodes this many at once there.
SLOTS = 256

Conversation = list[tuple[list[int], int]]


async def play(engine: AsyncLLM, lora: LoRARequest | None, conversations: list[Conversation], seed: int) -> dict:
    count = len(conversations)
    tokens, first, last = [0] * count, [0.0] * count, [0.0] * count
    started = time.perf_counter()

    async def converse(index: int) -> None:
        history: list[int] = []
        for turn, (new, max_tokens) in enumerate(conversations[index]):
            history += new
            sampling = SamplingParams(
                temperature=1.0,
                max_tokens=max_tokens,
                ignore_eos=True,
                logprobs=0,
                detokenize=False,
                output_kind=RequestOutputKind.DELTA,
            )
            prompt = TokensPrompt(prompt_token_ids=list(history))
            name = f"{seed}-{index}-{turn}"
            async for output in engine.generate(prompt, sampling, name, lora_request=lora):
                first[index] = first[index] or time.perf_counter() - started
                new_ids = output.outputs[0].token_ids
                tokens[index] += len(new_ids)
                history += new_ids
        last[index] = time.perf_counter() - started

    await asyncio.gather(*map(converse, range(count)))
    return {"tokens": tokens, "first": first, "last": last, "peakBytes": peak_bytes()}


def peak_bytes() -> int:
    """The peak of this process and of those in which it computes."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    lines = [line for process in processes for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


async def serve(options: argparse.Namespace) -> None:
    # Lines that vLLM prints are no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    args: dict[str, Any] = {
        "model": options.model,
        "dtype": "float32",
        "max_num_seqs": SLOTS,
        "kv_cache_memory_bytes": CACHE_BYTES,
        "logprobs_mode": "processed_logprobs",
        "generation_config": "vllm",
    }
    if options.adapter:
        args |= {"enable_lora": True, "max_lora_rank": 16, "max_loras": 1}
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**args))
    lora = LoRARequest("bench", 1, options.adapter) if options.adapter else None
    loop = asyncio.get_running_loop()
    seed = 0
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await play(engine, lora, json.loads(line), seed)), file=answers, flush=True)
        seed += 1
    engine.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapter")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
