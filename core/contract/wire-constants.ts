/**
 * Constants that TypeScript and Python processes share: `npm run contract` writes them into
 * `gpu-worker/temper_gpu/contract.py` under the same names. A pattern is text there.
 */

const NAME = '[a-z0-9][a-z0-9._-]{0,62}';
/** A run's name is part of file names, of `run@step` and of workflow ids. */
export const NAME_PATTERN = new RegExp(`^${NAME}$`);
/** The model's name under which engines serve a checkpoint: of branch 0, and of a branch b > 0. */
export const POLICY_NAME = '{run}@{step}';
export const BRANCH_POLICY_NAME = '{run}~{branch}@{step}';
/** Follows the name for every policy of a run but `main`. */
export const POLICY_SUFFIX = ':{policy}';
const ROLE_NAME = '[a-z0-9][a-z0-9_-]{0,31}';
/** Names of roles and of the policies that play them. */
export const ROLE_NAME_PATTERN = new RegExp(`^${ROLE_NAME}$`);
export const POLICY_NAME_PATTERN = new RegExp(`^(${NAME})(?:~([1-9][0-9]*))?@(0|[1-9][0-9]*)(?::(${ROLE_NAME}))?$`);
/** The policy of a run without roles; the manifest's own adapter. */
export const MAIN_POLICY = 'main';
/** Decay of a role's running mean reward, with `--advantage-baseline rae`. */
export const RAE_DECAY = 0.95;

/** `schema` of the store's records, as this version writes them. A version that changes what a member means raises it. */
export const RECORD_SCHEMA = 1;

/** Task queue of `initialise` and `train`, shared by all GPU workers. */
export const GPU_QUEUE = 'gpu';

/** The environment variable with the key that the engine's clients send. */
export const ENGINE_KEY_VARIABLE = 'TEMPER_ENGINE_KEY';
/** Environment variable with the key of an external vLLM server. */
export const VLLM_KEY_VARIABLE = 'TEMPER_VLLM_KEY';
/** Environment variable with a key that opens `/metrics` and nothing else. */
export const METRICS_KEY_VARIABLE = 'TEMPER_METRICS_KEY';
/** Headers of a call to the engine: which call it is, and for how long its client waits. */
export const CALL_HEADER = 'x-temper-call';
export const DEADLINE_HEADER = 'x-temper-deadline-ms';
/** Codes of the engine's errors that its clients tell apart. */
export const INTERNAL_ERROR = 'internal';
export const CONTEXT_TOO_LONG = 'context_length_exceeded';
export const BODY_TOO_LARGE = 'too_large';
/** Largest body of one request to a model; a longer conversation exceeds any context. */
export const MAX_BODY_BYTES = 16 * 1024 ** 2;
/** Deepest nesting of a body or of a tool call: no tool asks for more, and templates write it level by level. */
export const MAX_DEPTH = 100;

/** Largest answer of a model's server: no usable answer comes near it. */
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

/** Device, data types and threads that a GPU worker computes with. */
export const DEVICE_PATTERN = /^(auto|cpu|cuda(:[0-9]+)?)$/;
export const DEVICE_RULE = 'auto, cpu, cuda or cuda:N';
export const DTYPES = ['auto', 'float32', 'bfloat16'] as const;
/** Engines that sample: the GPU worker's own one, or vLLM. */
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
/** Most devices of one host that train. */
export const MOST_DEVICES = 64;
/** Policies that vLLM keeps loaded: by default those of a run without roles, while one takes the other's place. */
export const VLLM_POLICIES = 2;
export const MOST_VLLM_POLICIES = 1024;

/** Log line of a GPU worker that has everything imported and waits for its turn. */
export const STANDING_BY = 'standing by';

/** The store's random name, made by its first user. */
export const STORE_KEY = 'store.json';
const STEP_PREFIX = 'runs/{run}/branches/{branch}/steps/{step}';
/** Keys that both languages write or read; `store/layout.ts` explains them and has all others. */
export const STORE_KEYS = {
  blob: 'blobs/{sha256}',
  vocabulary: 'runs/{run}/vocabulary.json',
  view: 'runs/{run}/branches/{branch}/checkpoints/{step}',
  step: STEP_PREFIX,
  manifest: `${STEP_PREFIX}/manifest.json`,
  manifestTimes: `${STEP_PREFIX}/manifest.times.json`,
  pruned: `${STEP_PREFIX}/pruned.json`,
  tokens: `${STEP_PREFIX}/tokens.safetensors`,
  verdict: `${STEP_PREFIX}/verdict.json`,
  group: `${STEP_PREFIX}/groups/{group}`,
  rollouts: `${STEP_PREFIX}/groups/{group}.rollouts.jsonl.gz`,
  judged: `${STEP_PREFIX}/groups/{group}.judged.json`,
} as const;
/** The one key of the metadata in a step's `tokens` file. */
export const TOKEN_TRACE_METADATA = 'temper';
/** It is part of queue names, workflow ids and of a folder's name. */
export const STORE_ID_PATTERN = /^[A-Za-z0-9-]{1,64}$/;
/** Largest unpacked size of a group's attempts: two megabytes of a foreign store can unpack to two gigabytes. */
export const MAX_ROLLOUT_BYTES = 256 * 1024 ** 2;

/**
 * For so long a blob that nothing names stays: who has just put it may be about to name it. One that is put again has its
 * date renewed once it is half as old.
 */
export const KEPT_UNNAMED_MS = 86_400_000;

/** A process detects its own pauses: how often it checks, and how many pauses it remembers. */
export const PAUSE_CHECK_MS = 500;
export const KEPT_PAUSES = 32;
/** How often a worker asks Temporal for an answer. */
export const CONTACT_MS = 2000;
/** A task that begins this soon after a pause may have been scheduled during it. */
export const RESUME_GRACE_MS = 1000;

const CREDENTIALS = 'correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE';
const UNKNOWN_KEY = `the server does not know the access key; ${CREDENTIALS}`;
const PERMISSION = 'allow s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket';
const OTHER_REGION = 'the bucket is in another region; correct AWS_REGION';
const EXPIRED = 'the credentials (AWS_SESSION_TOKEN, or those of the profile) have expired; renew them';
const TOO_SLOW = 'the server took too long to answer; check the server and the network';
const TOO_MANY = 'the server limits the request rate; start fewer workers';
/**
 * Refusals of S3 servers and their clients, by code or HTTP status: when they are retried, and the remedy. `once-answered`:
 * after the server has taken a request of this process, because an operator rotates keys, edits policies and sets clocks
 * while workers run.
 */
export const S3_REFUSALS = {
  NoSuchBucket: ['never', 'there is no such bucket; create it, or correct the name'],
  InvalidBucketName: ['never', 'this is not a valid bucket name; correct it'],
  PermanentRedirect: ['never', OTHER_REGION],
  '301': ['never', OTHER_REGION],
  AuthorizationHeaderMalformed: ['never', OTHER_REGION],
  IllegalLocationConstraintException: ['never', OTHER_REGION],
  MissingRegion: ['never', 'no region is configured; set AWS_REGION (us-east-1 for most self-hosted servers)'],
  NotImplemented: ['never', 'the server must support conditional writes (If-None-Match: *); use one that does'],
  NotFound: ['never', 'the server at that address does not speak S3; correct AWS_ENDPOINT_URL'],
  ERR_INVALID_URL: ['never', 'the endpoint is not a URL; correct AWS_ENDPOINT_URL'],
  InvalidAccessKeyId: ['once-answered', UNKNOWN_KEY],
  XAdminUserNotFound: ['once-answered', UNKNOWN_KEY],
  InvalidToken: ['once-answered', UNKNOWN_KEY],
  SignatureDoesNotMatch: ['once-answered', `the secret key does not belong to the access key; ${CREDENTIALS}`],
  AccessDenied: ['once-answered', `these credentials lack a permission; ${PERMISSION}`],
  AllAccessDisabled: ['once-answered', `these credentials lack a permission; ${PERMISSION}`],
  '401': ['once-answered', `the credentials are wrong or lack a permission; ${CREDENTIALS}`],
  '403': ['once-answered', `the credentials are wrong or lack a permission (s3:ListBucket, too); ${CREDENTIALS}`],
  CredentialsProviderError: [
    'once-answered',
    'keys must be in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile named by AWS_PROFILE; set them',
  ],
  RequestTimeTooSkewed: ['once-answered', 'the clocks of this host and of the server differ; synchronize them'],
  ExpiredToken: ['always', EXPIRED],
  TokenRefreshRequired: ['always', EXPIRED],
  RequestTimeout: ['always', TOO_SLOW],
  TimeoutError: ['always', TOO_SLOW],
  '408': ['always', TOO_SLOW],
  '409': ['always', 'another request changes this object at this moment'],
  SlowDown: ['always', TOO_MANY],
  '429': ['always', TOO_MANY],
  ECONNREFUSED: ['always', 'nothing listens at that address; start the server, or correct AWS_ENDPOINT_URL'],
  ENOTFOUND: ['always', 'the host is unknown; correct AWS_ENDPOINT_URL, or check the network'],
  ECONNRESET: ['always', 'the connection broke; check the server and the network'],
} as const;
