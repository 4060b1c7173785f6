/** How each flag shows its effect: by what a command plans with and without it, or by a test. */
import { byTest, shownBy, type Probe } from '../by-test.ts';
import { PRODUCTION_FLAGS } from './production-probes.ts';
import { DEPLOY_FLAGS } from './deploy-flags.ts';
import { DOCTOR_FLAGS } from './doctor-flags.ts';
import { AUTO_FLAGS } from './auto/auto-flags.ts';
import { REWARD_FLAGS } from './reward-flags.ts';
import { SERVING_FLAGS } from './serving-flags.ts';
import { UI_FLAGS } from './ui-flags.ts';

export const TRAIN = 'train agent.ts --base-model pocket';
const ESTIMATE = 'estimate agent.ts --base-model pocket';
const EVAL = 'eval agent.ts --model openai/gpt-5';
const SCENARIOS = 'scenarios --from-task Add --model openai/gpt-5-mini';
const TRY = 'try agent.ts --model openai/gpt-5';
const SCHEDULE = 'schedule create agent.ts --base-model pocket --name nightly --every 1d';
const SFT = 'sft chats.jsonl --base-model pocket';
const WARM = `${TRAIN} --warm-start chats.jsonl`;
const PRUNE = 'checkpoints demo prune --dry-run --keep-last';
const json = (command: string): Probe => [command, `${command} --json`];
const added = (command: string, flag: string): Probe => [command, `${command} ${flag}`];
const OF_MCP = byTest('cli/scenarios/scenarios.test.ts', 'attempts call the tools of a real MCP server');
const REASONS = byTest(
  'workflows/reasons.test.ts',
  'the reasons that a person gives on the command line stand in the run',
);
const STEERING = byTest(
  'crash/steering.test.ts',
  'a run is paused, changed and resumed; when it has ended it goes back, and the old branch stays',
);
const BACKFILL = byTest(
  'workflows/schedules.test.ts',
  'a backfill fires for each time that has passed, one run after the other',
);
const FAILED_FIRING = byTest(
  'workflows/schedules.test.ts',
  'a run that fails pauses its schedule, with the reason; resumed, it begins with the last good checkpoint',
);
const REMOTE_WORKER = byTest(
  'cli/gpu-worker.test.ts',
  'the worker finds store, queue, key and Temporal where the project and the environment say',
);
const STACK_WORKER = byTest(
  'workers/local-stack/children.test.ts',
  'is told devices, type and memory of temporal.config.ts, and of flags before it',
);

const TARGETS = byTest(
  'cli/track.test.ts',
  '--track and --trace name targets, those of the project are the default, and none is none',
);
const TOLD = byTest(
  'cli/track.test.ts',
  'an ended run is told by temper track --to NAME --backfill, without a server, and --json says how far',
);
const OTLP_FILES = byTest(
  'cli/distill/from-traces.test.ts',
  'a file of traces becomes chats and scenarios, and what is left out is counted',
);
const OTLP_BEST = byTest(
  'cli/distill/from-traces.test.ts',
  'the best by a score are taken, from lines of JSON, from messages with their length, and from gzip',
);
const LANGFUSE_CALLS = byTest(
  'cli/distill/from-traces.test.ts',
  'Langfuse’s recorded calls are read page by page, with scores of traces, calls and sessions',
);
const VLLM_WORKER = byTest(
  'workers/local-stack/children.test.ts',
  'is told of vLLM by temporal.config.ts or --engine, and of its Python',
);

/** Flags of supervised steps, under the names of two commands. */
const EXAMPLES = {
  'examples-per-step': '3',
  turns: 'last',
  'held-out-examples': '7',
  'max-example-tokens': '99',
  overlong: 'refuse',
};
/** Flags of a run of examples alone. */
const OF_EXAMPLES = {
  ...EXAMPLES,
  run: 'other',
  steps: '9',
  epochs: '3',
  seed: '7',
  'eval-every': '2',
  'learning-rate': '0.5',
  'learning-rate-schedule': 'linear',
  'final-learning-rate-share': '0.5 --learning-rate-schedule linear',
  'learning-rate-restarts': '2 --learning-rate-schedule cosine',
  'warmup-steps': '2',
  'weight-decay': '0.5',
  'max-grad-norm': '0.5',
  optimizer: 'adamw_8bit',
  beta1: '0.5',
  beta2: '0.5',
  'adam-epsilon': '0.5',
  'full-fine-tuning': '',
  'lora-rank': '3',
  'lora-alpha': '3',
  'lora-rslora': '',
  'lora-dora': '',
  'lora-dropout': '0.5',
  'lora-layers': '0',
  'lora-target-modules': 'q_proj',
  'chat-template': 'chat.jinja',
  'chat-template-kwargs': '{"enable_thinking":false}',
  'micro-batch-tokens': '99',
  packing: 'rows',
  'continue-as-new-every': '2',
};
const OF_WARM_START = { steps: '9', 'learning-rate': '0.5', 'learning-rate-schedule': 'linear', ...EXAMPLES };

function each(command: string, line: string, prefix: string, values: Readonly<Record<string, string>>) {
  const flags = Object.entries(values).map(([name, value]) => [`--${prefix}${name}`, value]);
  return Object.fromEntries(
    flags.map(([flag, value]): [string, Probe] => [`${command} ${flag}`, added(line, `${flag} ${value}`)]),
  );
}

/** Probes by command and flag. Flags that every run has are asked for in options.test.ts. */
export const FLAGS: Readonly<Record<string, Probe>> = {
  'init --template': added('init here', '--template tools'),
  'init --base-model': byTest(
    'cli/init.test.ts',
    'another base model stands in the configuration, without what only the pocket models need',
  ),
  'init --yes': byTest('cli/init.test.ts', 'the template %s goes into a new folder, as it is'),
  ...AUTO_FLAGS,
  ...REWARD_FLAGS,
  ...shownBy(REASONS, ['pause', 'stop', 'set', 'rollback'], ['reason']),
  'sft --gpu-usd-per-hour': added(SFT, '--gpu-usd-per-hour 1'),
  'sft --max-cost-usd': added(SFT, '--max-cost-usd 1 --gpu-usd-per-hour 1'),
  'sft --max-hours': added(SFT, '--max-hours 1'),
  'estimate --probe': added(`${ESTIMATE} --like demo`, '--probe'),
  'estimate --like': added(ESTIMATE, '--like nobody'),
  'estimate --json': byTest('cli/estimate.test.ts', 'measures the most similar run of the agent and its base model'),
  ...shownBy(TARGETS, ['train', 'sft', 'fork'], ['track', 'trace']),
  ...shownBy(TOLD, ['track'], ['to', 'backfill', 'json']),
  ...shownBy(OTLP_FILES, ['distill'], ['from-otlp', 'scenarios']),
  ...shownBy(OTLP_BEST, ['distill'], ['score']),
  ...shownBy(LANGFUSE_CALLS, ['distill'], ['from-langfuse', 'since', 'most']),
  'train --run': added(TRAIN, '--run other'),
  'train --adapter': byTest(
    'cli/start-adapter.test.ts',
    'the run has the adapter’s shape, and names its files by hash',
  ),
  ...PRODUCTION_FLAGS,
  'train --warm-start': [TRAIN, WARM],
  ...each('train', WARM, 'warm-start-', OF_WARM_START),
  ...each('sft', SFT, '', OF_EXAMPLES),
  'sft --base-model': added('sft chats.jsonl', '--base-model pocket'),
  'sft --from': ['sft chats.jsonl --from demo@1', 'sft chats.jsonl --from demo@2'],
  'sft --adapter': byTest('cli/start-adapter.test.ts', 'temper sft --adapter begins with it alike'),
  'fork --run': ['fork demo@2 agent.ts --run a', 'fork demo@2 agent.ts --run b'],
  'runs --json': json('runs'),
  'show --json': json('show demo'),
  'distill --top': ['distill demo --top 1% --out a.jsonl', 'distill demo --top 100% --out a.jsonl'],
  'distill --attempts': byTest('cli/distill.test.ts', 'a hosted teacher’s best attempts become chats to train on'),
  'distill --out': ['distill demo --top 9% --out a.jsonl', 'distill demo --top 9% --out b.jsonl'],
  'report --out': added('report demo', '--out here.html'),
  'rollback --step': STEERING,
  'rollback --set': STEERING,
  'schedule create --name': ['schedule create agent.ts --base-model pocket --name a --every 1d', SCHEDULE],
  'schedule create --every': [SCHEDULE, SCHEDULE.replace('1d', '2d')],
  'schedule create --cron': [SCHEDULE, SCHEDULE.replace('--every 1d', '--cron 0~3~*~*~*')],
  'schedule create --from': added(SCHEDULE, '--from demo@2'),
  ...shownBy(FAILED_FIRING, ['schedule list', 'schedule show'], ['json']),
  'schedule pause --reason': byTest(
    'workflows/schedules.test.ts',
    'a paused schedule tells why and fires no more by itself',
  ),
  ...shownBy(BACKFILL, ['schedule backfill'], ['from', 'to']),
  'checkpoints --keep-last': [`${PRUNE} 1`, `${PRUNE} 4`],
  'checkpoints --keep-best': added(`${PRUNE} 1`, '--keep-best solvedRate:1'),
  'checkpoints --keep-every': added(`${PRUNE} 1`, '--keep-every 3'),
  'checkpoints --step': ['checkpoints demo delete --dry-run --step 1', 'checkpoints demo delete --dry-run --step 2'],
  'checkpoints --all': ['checkpoints demo delete --dry-run --step 1', 'checkpoints demo delete --dry-run --all'],
  'checkpoints --dry-run': added('checkpoints demo prune --keep-last 1', '--dry-run'),
  'checkpoints --with-pruned': byTest(
    'store/records/copy-run.test.ts',
    'a copy of a pruned run says so; what was pruned comes back when it is asked for',
  ),
  'checkpoints --json': json('checkpoints demo'),
  'gc --remove': byTest('cli/gc.test.ts', 'garbage is told by kind, and removed when it is asked for'),
  'gc --older-than': byTest('cli/gc.test.ts', 'garbage is told by kind, and removed when it is asked for'),
  'gc --json': json('gc'),
  'verify --no-recompute': added('verify demo@99', '--no-recompute'),
  'verify --json': json('verify demo --no-recompute'),
  ...shownBy(OF_MCP, ['scenarios'], ['from-mcp', 'tools', 'max-turns']),
  'scenarios --mcp-env': byTest(
    'cli/scenarios/parse-mcp.test.ts',
    'variables are passed on to a program, and one is the bearer token of a URL',
  ),
  'scenarios --from-task': [SCENARIOS, SCENARIOS.replace('Add', 'Multiply')],
  'scenarios --model': [SCENARIOS, SCENARIOS.replace('-mini', '')],
  ...each('scenarios', SCENARIOS, '', {
    count: '30',
    'held-out': '3',
    instructions: 'short',
    attempts: '1',
    'try-with': 'openai/gpt-5',
    'max-cost-usd': '1 --price openai/gpt-5-mini=1/2',
    price: 'openai/gpt-5-mini=1/2',
    'base-url': 'http://127.0.0.1:9/v1',
    seed: '7',
    concurrency: '2',
    out: 'other.jsonl',
  }),
  'scenarios --key-env': added('scenarios --from-task Add --model http://127.0.0.1:9#m', '--key-env MY_KEY'),
  'scenarios --json': byTest(
    'cli/scenarios/scenarios.test.ts',
    'near-duplicates and infeasible scenarios are left out, then always solved ones, and the rest is split by difficulty',
  ),
  'eval --model': ['eval agent.ts --model openai/gpt-5', 'eval agent.ts --model demo'],
  'eval --scenarios': added(EVAL, '--scenarios 3'),
  'eval --base-url': added(EVAL, '--base-url http://127.0.0.1:9/v1'),
  'eval --key-env': added('eval agent.ts --model http://127.0.0.1:9#m', '--key-env MY_KEY'),
  'eval --price': added(EVAL, '--price openai/gpt-5=1/2'),
  'eval --temperature': added(EVAL, '--temperature 0.5'),
  'eval --max-tokens': added(EVAL, '--max-tokens 99'),
  'eval --chat-template': added('eval agent.ts --model pocket', '--chat-template chat.jinja'),
  'eval --seed': added(EVAL, '--seed 7'),
  'eval --concurrency': added(EVAL, '--concurrency 2'),
  'eval --out': byTest('cli/eval.test.ts', 'the page shows every model’s attempt at a scenario, side by side'),
  'eval --json': byTest('cli/eval.test.ts', '--json prints means and intervals, --scenarios plays fewer'),
  'try --model': added('try agent.ts', '--model demo'),
  'try --scenario': added(TRY, '--scenario s2'),
  'try --scenarios': added(TRY, '--scenarios 5'),
  'try --attempts': added(TRY, '--attempts 5'),
  'try --temperature': added(TRY, '--temperature 0.5'),
  'try --max-tokens': added('try agent.ts', '--max-tokens 99'),
  'try --chat-template': added('try agent.ts', '--chat-template chat.jinja'),
  'try --eval': added(TRY, '--eval'),
  'try --replay': added(TRY, '--replay'),
  'try --save': byTest('cli/try.test.ts', '--save writes attempts that replayAttempt plays again'),
  'try --json': byTest('cli/try.test.ts', '--json has the calls, without token ids'),
  'dev --agent': byTest(
    'crash/judging.test.ts',
    'killed in the middle of judging, a run asks for no verdict again that it had received',
  ),
  'dev --ui-port': byTest('workers/local-stack/local-stack.test.ts', 'refuses a port that was asked for and is taken'),
  'dev --metrics-port': byTest(
    'workers/local-stack/local-stack.test.ts',
    'refuses a port that was asked for and is taken',
  ),
  'dev --engine-port': byTest('workers/config/config.test.ts', 'is refused ports of what no local stack starts'),
  'export --to': byTest('cli/export.test.ts', 'goes into an empty folder, and into a new one below a new one'),
  'export --format': byTest('cli/export.test.ts', 'is told as JSON'),
  'export --dtype': byTest('cli/export.test.ts', 'are made by Python, and described'),
  'export --quantize': byTest('cli/export.test.ts', 'flags that are missing, wrong or without effect'),
  'export --json': byTest('cli/export.test.ts', 'is told as JSON'),
  ...SERVING_FLAGS,
  ...DEPLOY_FLAGS,
  ...shownBy(
    STACK_WORKER,
    ['train', 'sft', 'fork', 'dev'],
    ['device', 'dtype', 'load-in-4bit', 'devices', 'shard-base-model'],
  ),
  ...shownBy(VLLM_WORKER, ['train', 'sft', 'fork', 'dev'], ['engine']),
  'setup --build': byTest(
    'workers/install/vllm-environment.test.ts',
    'is installed from its locked packages, PyTorch first for the CPU build, once',
  ),
  ...shownBy(
    REMOTE_WORKER,
    ['gpu-worker'],
    ['host', 'port', 'allow-host', 'device', 'dtype', 'devices', 'shard-base-model', 'threads'],
  ),
  'gpu-worker --no-train': byTest(
    'cli/gpu-worker.test.ts',
    'one that only samples takes no training, whatever the project says of it',
  ),
  'gpu-worker --load-in-4bit': byTest(
    'cli/gpu-worker.test.ts',
    'base models are in 4 bits by flag or configuration, but not for vLLM',
  ),
  'worker --metrics-port': byTest(
    'workers/metrics/metrics-server.test.ts',
    'a port of the command line is in place of the configured one',
  ),
  'worker --agent': byTest(
    'crash/frozen.test.ts',
    'a second TypeScript worker frozen while it polls costs one time-out for each task, does nothing with it when thawed, and the bytes are those of one worker',
  ),
  ...DOCTOR_FLAGS,
  ...UI_FLAGS,
};
