import { expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { temporaryFolder } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

const help = (name: string) => COMMANDS.find((command) => command.name === name)!.help();

test.each(COMMANDS.map(({ name }) => name))(
  'temper %s --help says how it is used, without its arguments',
  async (name) => {
    const { exitCode, stdout } = await runCli(await temporaryFolder(), [name, '--help']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`Usage: temper ${name}`);
    expect(stdout).toBe(await help(name));
  },
);

test('set', async () => {
  expect(await help('set')).toMatchInlineSnapshot(`
    "change settings of a running run, starting with its next step

    Usage: temper set RUN KEY=VALUE… [--reason TEXT]

    KEY is one of learningRate, temperature, steps, groupSize, evalEvery, maxJudgeUsd, or the name of its flag.
    Raise max-judge-usd to continue a run that paused because its judge reached the budget.
    A setting holds until you set it again, also across a rollback. The current step finishes as planned.

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this help

    Examples:
      temper set demo learningRate=1e-5
      temper set demo steps=300 evalEvery=50 --reason "it still learns""
  `);
});

test('rollback', async () => {
  expect(await help('rollback')).toMatchInlineSnapshot(`
    "go back to a finished step and train the following steps again, on a new branch

    Usage: temper rollback RUN --step N [--set KEY=VALUE]… [--reason TEXT]

    A running run drops its current step; an ended run is started again. Nothing is overwritten or deleted: the steps
    after N stay on their branch, and the steps on the new branch use other seeds.

    Options:
      --step N         the last step to keep
      --set KEY=VALUE  also change a setting, as temper set does; repeatable
      --reason TEXT    recorded with the run
      -h, --help       print this help

    Examples:
      temper rollback demo --step 40
      temper rollback demo --step 40 --set learningRate=1e-5"
  `);
});

test('pause', async () => {
  expect(await help('pause')).toMatchInlineSnapshot(`
    "pause a run after its current step

    Usage: temper pause RUN [--reason TEXT]

    The current step finishes, and so does the evaluation due after it. temper stop and temper cancel work on a paused run.

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this help"
  `);
});

test('train', async () => {
  expect(await help('train')).toMatchInlineSnapshot(`
    "start a training run or continue it, and show its progress

    Usage: temper train [AGENT] --base-model MODEL [flags]

    AGENT is a file whose default export is defineAgent({ … }), or a folder with an agent.ts; by default the working
    folder. Flags that train of temporal.config.ts sets need not be passed. If a run of this name exists, it continues;
    if that run is complete, you see its result. Ctrl-C stops watching (exit code 130): run the same command to continue.

    Options:
      --run NAME                                name of the run; default: the agent's name
      --base-model MODEL                        pocket, pocket-tools, a folder, a name of the Hugging Face hub, or s3://BUCKET/PREFIX
      --seed N                                  seed of all random choices [1]
      --steps N                                 optimizer steps [100]
      --groups-per-step N                       scenarios per step [8]
      --group-size N                            attempts per scenario [8]
      --minimum-group-size N                    minimum of successful attempts for a group to be trained [2]
      --replacement-rounds N                    how often a step replaces groups with identical rewards by new scenarios [1]
      --max-scenarios N                         maximum number of training scenarios [10000]
      --eval-scenarios N                        maximum number of held-out scenarios [200]
      --eval-every N                            also evaluate every N steps; 0: only before and after training [0]
      --learning-rate X                         learning rate of AdamW [0.00005]
      --learning-rate-schedule NAME             constant, linear or cosine ["constant"]
      --final-learning-rate-share X             final learning rate, as a share of the initial one
      --warmup-steps N                          steps of linear warm-up [0]
      --weight-decay X                          weight decay of AdamW [0]
      --max-grad-norm X                         gradient clipping norm [1]
      --beta1 X                                 beta1 of AdamW [0.9]
      --beta2 X                                 beta2 of AdamW [0.99]
      --adam-epsilon X                          epsilon of AdamW [1e-8]
      --lora-rank N                             rank of the adapter [16]
      --lora-alpha X                            scale of the adapter: alpha / rank [32]
      --lora-target-modules A,B                 comma-separated module names; default: every linear layer except the output head
      --temperature X                           sampling temperature in training and evaluation [1]
      --max-tokens N                            token limit of a call that sets none [512]
      --chat-template FILE                      Jinja chat template to use instead of the model's own
      --chat-template-kwargs JSON               variables of the chat template, for calls that set none
      --max-calls-per-attempt N                 maximum number of calls per attempt; more fail the attempt [64]
      --attempt-timeout-ms N                    time limit of an attempt; waiting for an unavailable engine does not count [600000]
      --call-timeout-ms N                       time limit of one call [120000]
      --call-retry-budget-ms N                  how long a call is retried while the engine is unavailable [300000]
      --passes N                                how often a step trains its groups [1]
      --mini-batches N                          optimizer updates per pass, each on a part of the groups [1]
      --loss NAME                               cispo; with --passes or --mini-batches above 1 also ppo, gspo, dppo, sapo, importance_sampling ["cispo"]
      --epsilon-low X                           lower end of the range that the ratio is clipped to, as a distance from 1
      --epsilon-high X                          upper end of that range, as a distance from 1
      --dual-clip X                             ppo's bound for negative advantages
      --max-shift X                             how far dppo lets a token's probability move
      --log-ratio-penalty X                     factor of dppo's squared log ratio
      --tau-positive X                          how fast the gradient of sapo fades, for positive advantages
      --tau-negative X                          the same for negative advantages
      --reduction NAME                          what counts the same in the loss: token, attempt or constant ["token"]
      --reduction-tokens N                      tokens that an attempt counts as, with --reduction constant
      --correction NAME                         how to treat tokens whose sampler differs from the trainer: token-truncate, token-mask, …
      --correction-cap X                        largest ratio of trainer to sampler that --correction accepts
      --kl-coefficient X                        what a divergence from the base model costs [0]
      --kl-as NAME                              where --kl-coefficient is charged: loss or reward ["loss"]
      --entropy-coefficient X                   what a nat of entropy is worth in the loss [0]
      --advantage-scale NAME                    none, group-std or batch-std ["none"]
      --leave-one-out                           baseline of an attempt is the mean of the others in its group
      --truncated NAME                          attempts cut off by a token limit: mask, penalise or keep ["mask"]
      --max-logprob-mismatch X                  maximum difference between sampler and trainer (mean k3); above it the step fails [0.001]
      --micro-batch-tokens N                    tokens per micro-batch; more is faster and needs more memory [16384]
      --packing NAME                            tree computes a token that several rows begin with once; rows computes each row alone ["tree"]
      --judge NAME                              judge to use instead of the agent's: provider/model
      --max-judge-usd X                         budget of the judge for the whole run; the run pauses before exceeding it
      --continue-as-new-every N                 steps after which the workflow continues as new, with a fresh history
      --warm-start FILE                         JSON lines of chats that the first steps train before the agent is played
      --warm-start-steps N                      how many of --steps train them; default: one pass over the file
      --warm-start-examples-per-step N          examples per step [16]
      --warm-start-turns WHICH                  assistant messages to train: all or last ["all"]
      --warm-start-held-out-examples N          examples that are held out and scored; default: a tenth, at most 200
      --warm-start-max-example-tokens N         token limit of an example; default: the model's context window
      --warm-start-overlong NAME                examples above the limit: mask leaves them out, truncate cuts them, refuse ends the run ["mask"]
      --warm-start-learning-rate X              learning rate of these steps; default: --learning-rate
      --warm-start-learning-rate-schedule NAME  constant, linear or cosine, down to a tenth at the last of these steps ["constant"]
      --engine NAME                             what samples: embedded or vllm, which temper setup vllm installs ["embedded"]
      --device NAME                             where the local stack computes: auto, cpu, cuda or cuda:N ["auto": a GPU if there is one]
      --dtype NAME                              type of the base model: auto, float32 or bfloat16 ["auto": bfloat16 on a GPU, else float32]
      -h, --help                                print this help

    Examples:
      temper train examples/tic-tac-toe/agent.ts --base-model pocket --steps 100
      temper train agent.ts --base-model Qwen/Qwen3-4B --steps 200 --group-size 8
      temper train agent.ts --base-model Qwen/Qwen3-4B --steps 220 --warm-start chats.jsonl --warm-start-steps 20"
  `);
});

test('runs', async () => {
  expect(await help('runs')).toMatchInlineSnapshot(`
    "list the runs of this project

    Usage: temper runs [--json]

    Options:
      --json      print one JSON object
      -h, --help  print this help"
  `);
});

test('show', async () => {
  expect(await help('show')).toMatchInlineSnapshot(`
    "show one run: its state, its results and what it is waiting for

    Usage: temper show RUN [--json]

    Reads the store and needs no server. If a server answers within two seconds, you also see the pending activities.

    Options:
      --json      print one JSON object
      -h, --help  print this help"
  `);
});

test('watch', async () => {
  expect(await help('watch')).toMatchInlineSnapshot(`
    "watch a run live

    Usage: temper watch RUN

    Follows the run until it ends. Needs no server; if one answers, you see what the run waits for. Ctrl-C stops watching.

    Options:
      -h, --help  print this help"
  `);
});

test('stop', async () => {
  expect(await help('stop')).toMatchInlineSnapshot(`
    "end a run after its current step, and keep the result

    Usage: temper stop RUN [--reason TEXT]

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this help"
  `);
});

test('cancel', async () => {
  expect(await help('cancel')).toMatchInlineSnapshot(`
    "end a run immediately; committed steps stay

    Usage: temper cancel RUN

    The current step is discarded. To finish it first, use temper stop.

    Options:
      -h, --help  print this help"
  `);
});

test('report', async () => {
  expect(await help('report')).toMatchInlineSnapshot(`
    "write an HTML report: curves, groups side by side, attempts

    Usage: temper report RUN [--out FILE]

    Reads the store and needs no server. The report is one file that works offline.

    Options:
      --out FILE  output file; default: .temper/reports/RUN.html
      -h, --help  print this help"
  `);
});

test('checkpoints', async () => {
  expect(await help('checkpoints')).toMatchInlineSnapshot(`
    "list a run's checkpoints, copy the run to or from another store, or remove old weights

    Usage: temper checkpoints CHECKPOINT [push STORE | pull STORE | prune --keep-last N] [--json]

    Without an action it lists the committed steps of RUN, or shows the one that CHECKPOINT names. push and pull copy the
    whole run between the project's store and STORE (a folder or a URI). They skip what exists, continue an interrupted
    copy, and pull repairs damaged objects. prune removes weights and optimizer states that nothing needs; manifests,
    rollouts and verdicts stay. Needs no server.
    CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios), or
    RUN~BRANCH@STEP (on another branch, after a rollback).

    Options:
      --keep-last N         prune: keep the newest N of each branch
      --keep-best METRIC:N  prune: keep the N best by an evaluation metric; repeatable
      --keep-every N        prune: keep every Nth step
      --dry-run             prune: only show what would be removed
      --with-pruned         push, pull: also copy weights that were pruned in the target
      --json                print one JSON object
      -h, --help            print this help

    Examples:
      temper checkpoints demo@best
      temper checkpoints demo push /mnt/backup/store
      temper checkpoints demo prune --keep-last 3 --keep-best reward:2 --dry-run"
  `);
});

test('verify', async () => {
  expect(await help('verify')).toMatchInlineSnapshot(`
    "check every hash of a run, and recompute one step

    Usage: temper verify CHECKPOINT [--no-recompute] [--json]

    Reads the store, writes nothing and needs no server. The whole run is checked, and the step of CHECKPOINT is
    recomputed from its recorded rollouts on this machine; on the platform that trained it, the bytes must match. Exit
    code 1 if a check fails.
    CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios), or
    RUN~BRANCH@STEP (on another branch, after a rollback).

    Options:
      --no-recompute  only check hashes; needs no Python
      --json          print one JSON object
      -h, --help      print this help

    Examples:
      temper verify demo
      temper verify demo@12"
  `);
});

test('eval', async () => {
  expect(await help('eval')).toMatchInlineSnapshot(`
    "compare models and checkpoints on held-out scenarios, without training

    Usage: temper eval AGENT --model MODEL… [flags]

    MODEL is a CHECKPOINT or a base model on the local stack, or a hosted model: provider/model
    (openai, anthropic, gemini, openrouter, together, groq, mistral, xai, deepseek, ollama; its key is in
    PROVIDER_API_KEY), or URL#MODEL for any OpenAI-compatible server. If you pass several, all play the same
    scenarios. Prints reward, metrics, tokens, cost and latency with 95 % intervals, and writes an HTML page.
    CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios), or
    RUN~BRANCH@STEP (on another branch, after a rollback).

    Options:
      --model MODEL         model or checkpoint to evaluate; repeatable
      --scenarios N         maximum number of scenarios; default: the run's, or 200
      --base-url URL        OpenAI-compatible server that serves every MODEL, instead of the local stack
      --key-env NAME        environment variable that holds the key of --base-url or URL#MODEL
      --price MODEL=IN/OUT  US dollars per million input and output tokens; repeatable
      --temperature X       sampling temperature; default: the run's, or 1; for a hosted model its own
      --max-tokens N        token limit of each hosted call, whatever the agent sets; for reasoning models
      --chat-template FILE  Jinja chat template to use instead of the model's own
      --seed N              seed of the engine's sampling and of the agent's random, but not of a hosted model; default: the run's, or 1
      --concurrency N       scenarios played at once; default: 64
      --out FILE            output file; default: .temper/reports/eval-AGENT.html
      --json                print one JSON object
      -h, --help            print this help

    Examples:
      temper eval examples/tic-tac-toe/agent.ts --model demo@best --model demo@0 --model pocket
      temper eval agent.ts --model demo --model openai/gpt-5 --price openai/gpt-5=1.25/10 --max-tokens 2000
      temper eval agent.ts --model my-model --base-url http://127.0.0.1:8000/v1 --key-env MY_KEY"
  `);
});

test('dev', async () => {
  expect(await help('dev')).toMatchInlineSnapshot(`
    "run the local stack in the foreground: Temporal server and UI, workers, GPU worker

    Usage: temper dev [flags]

    Runs until Ctrl-C, or joins a local stack that is already running. The stack stops with the last command using it.

    Options:
      --agent FILE     also play this agent, so that its runs continue
      --engine NAME    what samples: embedded or vllm, which temper setup vllm installs ["embedded"]
      --device NAME    where the local stack computes: auto, cpu, cuda or cuda:N ["auto": a GPU if there is one]
      --dtype NAME     type of the base model: auto, float32 or bfloat16 ["auto": bfloat16 on a GPU, else float32]
      --ui-port N      port of Temporal's UI; default: a free one, remembered
      --engine-port N  port of the engine; default: a free one, remembered
      -h, --help       print this help"
  `);
});

test('worker', async () => {
  expect(await help('worker')).toMatchInlineSnapshot(`
    "run a TypeScript worker for a deployment: workflows and the agents you pass

    Usage: temper worker [--agent FILE]…

    Finds Temporal by TEMPORAL_* or temporal.toml, and store and engine by temporal.config.ts or TEMPER_STORE,
    TEMPER_ENGINE_URL and TEMPER_ENGINE_KEY. On SIGTERM or Ctrl-C it finishes in-flight work, then exits.

    Options:
      --agent FILE  agent to play; repeatable
      -h, --help    print this help"
  `);
});

test('setup', async () => {
  expect(await help('setup')).toMatchInlineSnapshot(`
    "install an engine that Temper does not bring along: vllm

    Usage: temper setup ENGINE [--build NAME]

    Installs vLLM into an environment of its own in the cache (TEMPER_CACHE), from locked packages. Linux only.
    The CPU build takes about 5 GB of downloads where PyTorch has no CPU build, else 1 GB. For an AMD GPU, install
    vLLM's ROCm build yourself and set TEMPER_VLLM_PYTHON to its Python.

    Options:
      --build NAME  which build of vLLM: cpu or cuda; default: cuda if nvidia-smi finds a GPU, else cpu
      -h, --help    print this help

    Examples:
      temper setup vllm
      temper setup vllm --build cuda"
  `);
});
