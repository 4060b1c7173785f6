/**
 * What TypeScript and Python processes must agree on besides the types: `npm run contract` writes these constants into
 * `gpu-worker/temper_gpu/contract.py`, under the same names. A pattern is text there.
 */

const NAME = '[a-z0-9][a-z0-9._-]{0,62}';
/** A run's name is part of file names, of `run@step` and of workflow ids. */
export const NAME_PATTERN = new RegExp(`^${NAME}$`);
/** `run@step`, on a branch b > 0 `run~b@step`. */
export const POLICY_NAME_PATTERN = new RegExp(`^(${NAME})(?:~([1-9][0-9]*))?@(0|[1-9][0-9]*)$`);

/** `schema` of the store's records, as this version writes them. A version that changes what a member means raises it. */
export const RECORD_SCHEMA = 1;

/** Where `initialise` and `train` are done, by any GPU worker. */
export const GPU_QUEUE = 'gpu';

/** The environment variable with the key that the engine's clients send. */
export const ENGINE_KEY_VARIABLE = 'TEMPER_ENGINE_KEY';
/** The environment variable with the key of a vLLM server that somebody else runs. */
export const VLLM_KEY_VARIABLE = 'TEMPER_VLLM_KEY';
/** Headers of a call to the engine: which call it is, and for how long its client waits. */
export const CALL_HEADER = 'x-temper-call';
export const DEADLINE_HEADER = 'x-temper-deadline-ms';
/** Codes of the engine's errors that its clients tell apart. */
export const INTERNAL_ERROR = 'internal';
export const CONTEXT_TOO_LONG = 'context_length_exceeded';
export const BODY_TOO_LARGE = 'too_large';
/** Of one request to a model; a longer conversation has outgrown any. */
export const MAX_BODY_BYTES = 16 * 1024 ** 2;

/** Of one answer of a model's server: no answer that can be used comes near it. */
export const MAX_ANSWER_BYTES = 256 * 1024 ** 2;

/** Base models that ship with the GPU worker. */
export const BUILT_IN_MODELS = ['pocket', 'pocket-tools'] as const;
/** Before the place of a model in a bucket, in `models.json`, and before it in the name that a run records. */
export const S3_SCHEME = 's3://';
export const S3_NAMED = 's3/';
/** A chat template that a run brings: those of models have 1 to 20 kB. */
export const MAX_CHAT_TEMPLATE_BYTES = 100_000;
/** Before the name of a model of the Hugging Face hub, in `models.json`. */
export const HUB_PREFIX = 'hub:';

/** What the GPU worker computes on and with, and how much at once. */
export const DEVICE_PATTERN = /^(auto|cpu|cuda(:[0-9]+)?)$/;
export const DEVICE_RULE = 'auto, cpu, cuda or cuda:N';
export const DTYPES = ['auto', 'float32', 'bfloat16'] as const;
/** What samples: the GPU worker's own engine, or vLLM. */
export const ENGINES = ['embedded', 'vllm'] as const;
/** The highest rank of adapters that a vLLM has room for which the GPU worker starts. */
export const VLLM_LORA_RANK = 64;
export const DEFAULT_THREADS = 2;
export const MOST_THREADS = 1024;
export const LEAST_KV_CACHE_BYTES = 1024 ** 2;
export const DEFAULT_KV_CACHE_BYTES = 4 * 1024 ** 3;
export const LEAST_SLOTS = 16;
export const MOST_SLOTS = 2048;
export const DEFAULT_SLOTS = 128;
/** Of one host, that train. */
export const MOST_DEVICES = 64;

/** What a GPU worker logs that has everything imported and waits for its turn. */
export const STANDING_BY = 'standing by';

/** The store's random name, made by whoever comes first. */
export const STORE_KEY = 'store.json';
/** It is part of queue names, workflow ids and of a folder's name. */
export const STORE_ID_PATTERN = /^[A-Za-z0-9-]{1,64}$/;
/** Of a group's attempts, unpacked: two megabytes of a foreign store can unpack to two gigabytes. */
export const MAX_ROLLOUT_BYTES = 256 * 1024 ** 2;

/**
 * For so long a blob that nothing names stays: who has just put it may be about to name it. One that is put again has its
 * date renewed once it is half as old.
 */
export const KEPT_UNNAMED_MS = 86_400_000;

/** How a process notices that it stood still: how often it looks, and how many standstills it remembers. */
export const PULSE_MS = 500;
export const KEPT_STANDSTILLS = 32;
/** How often a worker asks Temporal for an answer. */
export const CONTACT_MS = 2000;
/** What begins so soon after a standstill may have been handed out during it. */
export const JUST_THAWED_MS = 1000;
