"""serve.py FILE NAME: llama.cpp's HTTP server with a GGUF file, until standard input is closed. Prints its address."""

import sys

import xllamacpp

CONTEXT = 2048


def main(file: str, name: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = file
    params.model_alias = {name}
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.use_jinja = True
    params.warmup = False
    # Threads that wait for each other spin, which takes minutes beside other work.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
