/** Lines of commands with flags that make a difference to them. Flags that every run has are asked for in options.test.ts. */

/** A flag with its value. The difference that it makes has the value in it, or what stands beside it. */
type Given = string | readonly [given: string, shows: RegExp];

/** Flags of which the value alone shows the difference. */
const each = (flags: string): string[] => flags.split(/\s*\|\s*/);
const json = ['--json', /^\s*"\w+":|^\[/] as const;
export const TRAIN = 'train agent.ts --base-model pocket';
const WARM = `${TRAIN} --warm-start chats.jsonl`;
const ESTIMATE = `${TRAIN} --estimate`;
const EVAL = 'eval agent.ts --model openai/gpt-5';
const TRY = 'try agent.ts --model openai/gpt-5';
const CHATS = 'train chats.jsonl --base-model pocket';
const SCENARIOS = 'scenarios --from-task Add --model openai/gpt-5-mini';
const SCHEDULE = 'schedule create agent.ts --base-model pocket --name nightly --every 1d';
const TASK = 'init --task Add --base-model pocket';
const PRUNE = 'checkpoints prune demo --dry-run --keep-last 1';

/** Flags of supervised steps, those of chats and those of a warm start. */
const EXAMPLES: readonly Given[] = each(`--examples-per-step 3 | --turns last | --held-out-examples 7
  | --max-example-tokens 99 | --overlong refuse`);

/** Beside what the line says without them. */
export const ADDED: Readonly<Record<string, readonly Given[]>> = {
  'init here': [['--template tools', /notes\.ts/]],
  [TRAIN]: [
    '--run other',
    ['--warm-start chats.jsonl', /config.supervised.steps: /],
    ...each(`--epochs 3 | --at-least 3 | --max-policy-age 3 | --from-production demo`),
  ],
  [WARM]: [
    ...each(`--warm-start-steps 9 | --warm-start-learning-rate 0.5 | --warm-start-learning-rate-schedule linear`),
    ...EXAMPLES,
  ],
  [ESTIMATE]: ['--like nobody'],
  [`${ESTIMATE} --like demo`]: ['--probe'],
  [CHATS]: [...EXAMPLES, ['--epochs 3', /config.steps: /]],
  [SCHEDULE]: [
    ...each(`--epochs 3 | --at-least 3 | --max-policy-age 3 | --from-production demo`),
    ['--from demo@2', /begins.step: 2/],
  ],
  runs: [json, ['--agent nobody', /^no runs of the agent nobody$/]],
  'show demo': [json, ['--follow', /^step +1\//]],
  gc: [json, '--older-than 1h'],
  doctor: [json],
  'checkpoints demo': [json],
  'verify demo --no-recompute': [json],
  'verify demo@99': [['--no-recompute', /--no-recompute/]],
  'production demo': [json],
  'rewards demo': [json, '--expires-days 3'],
  'track demo': [json, '--to csv'],
  // Without it nothing is told.
  'track demo --to csv': [['--backfill', /^csv has demo up to step|^temper: csv did not get all of demo/]],
  'report demo': ['--out here.html'],
  [PRUNE]: [
    ['--keep-best solvedRate:1', /^kept +2: one of the best 1 by solvedRate$/],
    ['--keep-every 3', /^kept +3: /],
  ],
  'checkpoints prune demo --keep-last 1': [['--dry-run', /would/]],
  'production promote demo@1 --json': ['--by ada', '--reason because', '--to other'],
  'production promote demo@1': [json],
  [SCENARIOS]: [
    ...each(`--count 30 | --held-out 3 | --instructions short | --attempts 1 | --try-with openai/gpt-5
      | --max-cost-usd 1 --price openai/gpt-5-mini=1/2`),
    ['--price openai/gpt-5-mini=1/2', /price.prompt: 1$/],
    ...each(`--base-url http://127.0.0.1:9/v1 | --seed 7 | --concurrency 2 | --out other.jsonl`),
  ],
  'scenarios --from-task Add --model http://127.0.0.1:9#m': ['--key-env MY_KEY'],
  [EVAL]: [
    '--base-url http://127.0.0.1:9/v1',
    ['--price openai/gpt-5=1/2', /price.prompt: 1$/],
    ...each(`--temperature 0.5 | --max-tokens 99 | --seed 7 | --concurrency 2`),
  ],
  'eval agent.ts --model http://127.0.0.1:9#m': ['--key-env MY_KEY'],
  'eval agent.ts --model pocket': [['--chat-template chat.jinja', /template/i]],
  'try agent.ts': [['--model demo', /demo/], '--max-tokens 99', ['--chat-template chat.jinja', /template/i]],
  [TRY]: [
    '--scenario s2',
    ['--scenarios 5', /scenarios\.4\./],
    '--attempts 5',
    '--temperature 0.5',
    ['--eval', /isHeldOut: true/],
    ['--replay', /replay/i],
  ],
  [TASK]: [
    ...each(`--mcp no-such-server | --tools a | --mcp-env A | --instructions short | --count 9 | --held-out 2
      | --attempts 2 | --writer openai/gpt-5 | --judge openai/gpt-5`),
    ['--price openai/gpt-5-mini=1/2', /price.prompt: 1$/],
  ],
  [`${TASK} --price openai/gpt-5-mini=1/2`]: ['--max-cost-usd 1'],
  [`${TASK} --writer http://127.0.0.1:9/v1#m`]: ['--key-env MY_KEY'],
  'deploy demo@1 --to together --base-model a/b --bucket s3://models/a': [
    ...each(`--endpoint e1 | --model-name mine | --prompts 3`),
    ['--no-proof', /prompts: null/],
  ],
  'deploy demo@1 --to huggingface --base-model a/b --repo me/demo': [['--public', /public: true/]],
  'deploy demo@1 --to fireworks --account me --base-model a/b': ['--deployment d1'],
  'deploy demo@1 --to fireworks --account me --base-model a/b --deployment d1': [['--replace', /replace: true/]],
  'deploy demo@1 --to fireworks --base-model a/b': ['--account me'],
  'deploy demo@1 --to wandb --project games --base-model a/b': ['--entity me'],
  'deploy demo@1 --to s3 --base-model a/b': ['--bucket s3://models/a'],
  'deploy demo@1 --to vllm --folder /adapters': ['--url http://127.0.0.1:8000'],
  'deploy demo@1 --to wandb --entity me --base-model a/b': ['--project games'],
  'deploy demo@1 --to vllm --url http://127.0.0.1:8000': ['--folder /adapters'],
  'deploy demo@1 --to ollama --url http://127.0.0.1:11434': ['--quantize q8_0'],
  'serve demo': [
    ...each(`--host 127.0.0.2 | --port 8099 | --allow-host gpu-1`),
    ['--record', /share: 1/],
    ['--record-share 0.5', /--record-share/],
    ['--record-days 3', /--record-days/],
    ['--redact chat.jinja', /--redact/],
  ],
  'serve demo --record': ['--record-share 0.5', '--record-days 3', '--redact chat.jinja'],
  review: ['--host 127.0.0.2', '--port 8099', '--allow-host gpu-1'],
  'gpu-worker': [
    ...each(`--host 127.0.0.2 | --port 8099 | --allow-host gpu-1 | --device cpu | --dtype bfloat16 | --devices 2`),
    ['--shard-base-model --devices 2', /"shardBaseModel":true/],
    ['--load-in-4bit', /"loadIn4bit":true/],
    '--threads 3',
    ['--no-train', /"role":"sample"/],
  ],
  'doctor model pocket': [
    '--context 99',
    ['--engine vllm', /"kind":"vllm"/],
    ...each(`--device cpu | --dtype float32 | --devices 2`),
    ['--shard-base-model --devices 2', /"shardBaseModel":true/],
    ['--load-in-4bit', /"loadIn4bit":true/],
    '--chat-template chat.jinja',
    ['--full-fine-tuning', /"lora":null/],
    '--lora-rank 3',
    '--lora-target-modules q_proj',
    ['--lora-layers 0', /"layers":\[0/],
    ['--lora-dora', /"dora":true/],
    '--lora-dropout 0.5',
    '--optimizer adamw_8bit',
    ['--entropy-coefficient 0.1', /"trainsEntropy":true/],
    '--micro-batch-tokens 99',
  ],
};

/** In the place of another value. */
export const CHANGED: Readonly<Record<string, readonly [without: string, given: string, shows?: RegExp]>> = {
  'train --from': ['train chats.jsonl --from demo@1', 'train chats.jsonl --from demo@2', /step: 2/],
  'deploy --to': ['deploy demo@1 --to ollama --url http://h:1', 'deploy demo@1 --to server --url http://h:1'],
  'deploy --base-model': [
    'deploy demo@1 --to s3 --base-model a/b --bucket s3://models/a',
    'deploy demo@1 --to s3 --base-model c/d --bucket s3://models/a',
  ],
  'eval --scenarios': [`${EVAL} --scenarios 1`, `${EVAL} --scenarios 2`, /\.1\./],
  'train --run': ['train --from demo@2 --run a', 'train --from demo@2 --run b', /run: "b"/],
  'distill --top': ['distill demo --top 1% --out a.jsonl', 'distill demo --top 100% --out a.jsonl', /20 of 20/],
  'distill --out': ['distill demo --top 9% --out a.jsonl', 'distill demo --top 9% --out b.jsonl'],
  'schedule create --name': [SCHEDULE, SCHEDULE.replace('nightly', 'other')],
  'schedule create --every': [SCHEDULE, SCHEDULE.replace('1d', '2d')],
  'schedule create --cron': [SCHEDULE, SCHEDULE.replace('--every 1d', '--cron 0~3~*~*~*'), /0 3 \* \* \*/],
  'checkpoints prune --keep-last': [PRUNE, PRUNE.replace(/1$/, '4')],
  'checkpoints delete --step': [
    'checkpoints delete demo --dry-run --step 1',
    'checkpoints delete demo --dry-run --step 2',
  ],
  'checkpoints delete --all': [
    'checkpoints delete demo --dry-run --step 1',
    'checkpoints delete demo --dry-run --all',
    /^demo would/,
  ],
  'scenarios --from-task': [SCENARIOS, SCENARIOS.replace('Add', 'Multiply')],
  'scenarios --model': [SCENARIOS, SCENARIOS.replace('-mini', '')],
  'eval --model': ['eval agent.ts --model openai/gpt-5', 'eval agent.ts --model demo'],
  'deploy --repo': [
    'deploy demo@1 --to huggingface --base-model a/b',
    'deploy demo@1 --to huggingface --base-model a/b --repo me/demo',
  ],
};
