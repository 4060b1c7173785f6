"""vLLM as an engine: a server of its own process, started, watched and proven by this one."""
