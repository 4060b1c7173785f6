import { expect, test } from 'vitest';
import { helpOf } from '../../cli/command-line/help.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { temporaryFolder } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

const help = (name: string) => helpOf(COMMANDS.find((command) => command.name === name)!);

test.each(COMMANDS.map(({ name }) => name))(
  'temper %s --help says how it is used, without its arguments',
  async (name) => {
    const { exitCode, stdout } = await runCli(await temporaryFolder(), [name, '--help']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`Usage: temper ${name}`);
    expect(stdout).toBe(help(name));
  },
);

test('set', () => {
  expect(help('set')).toMatchInlineSnapshot(`
    "change settings of a running run, starting with its next step

    Usage: temper set RUN KEY=VALUE… [--reason TEXT]

    KEY is one of learningRate, temperature, steps, groupSize, evalEvery, maxJudgeUsd,
    gpuUsdPerHour, maxCostUsd, maxHours, or the name of its flag.
    Raise max-judge-usd, max-cost-usd or max-hours to continue a run that paused because it reached that budget.
    A setting holds until you set it again, also across a rollback. The current step finishes as planned.

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this help

    Examples:
      temper set demo learningRate=1e-5
      temper set demo steps=300 evalEvery=50 --reason "it still learns""
  `);
});

test('rollback', () => {
  expect(help('rollback')).toMatchInlineSnapshot(`
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

test('pause', () => {
  expect(help('pause')).toMatchInlineSnapshot(`
    "pause a run after its current step

    Usage: temper pause RUN [--reason TEXT]

    The current step finishes, and so does the evaluation due after it. temper stop and temper cancel work on a paused run.

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this help"
  `);
});

test('runs', () => {
  expect(help('runs')).toMatchInlineSnapshot(`
    "list the runs of this project

    Usage: temper runs [--json]

    Options:
      --json      print one JSON object
      -h, --help  print this help"
  `);
});

test('show', () => {
  expect(help('show')).toMatchInlineSnapshot(`
    "show one run: its state, its results and what it is waiting for

    Usage: temper show RUN [--json]

    Reads the store and needs no server. If a server answers within two seconds, you also see the pending activities.

    Options:
      --json      print one JSON object
      -h, --help  print this help"
  `);
});

test('watch', () => {
  expect(help('watch')).toMatchInlineSnapshot(`
    "watch a run live

    Usage: temper watch RUN

    Follows the run until it ends. Needs no server; if one answers, you see what the run waits for. Ctrl-C stops watching.

    Options:
      -h, --help  print this help"
  `);
});

test('stop', () => {
  expect(help('stop')).toMatchInlineSnapshot(`
    "end a run after its current step, and keep the result

    Usage: temper stop RUN [--reason TEXT]

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this help"
  `);
});

test('cancel', () => {
  expect(help('cancel')).toMatchInlineSnapshot(`
    "end a run immediately; committed steps stay

    Usage: temper cancel RUN

    The current step is discarded. To finish it first, use temper stop.

    Options:
      -h, --help  print this help"
  `);
});

test('report', () => {
  expect(help('report')).toMatchInlineSnapshot(`
    "write an HTML report: curves, groups side by side, attempts

    Usage: temper report RUN [--out FILE]

    Reads the store and needs no server. The report is one file that works offline.

    Options:
      --out FILE  output file [.temper/reports/RUN.html]
      -h, --help  print this help"
  `);
});

test('checkpoints', () => {
  expect(help('checkpoints')).toMatchInlineSnapshot(`
    "list a run's checkpoints, copy the run to or from another store, or remove weights or the run

    Usage: temper checkpoints CHECKPOINT [push|pull STORE | prune --keep-last N | delete --step N|--all] [--json]

    Without an action it lists the committed steps of RUN, or shows the one that CHECKPOINT names. push and pull copy the
    whole run between the project's store and STORE (a folder or a URI). They skip what exists, continue an interrupted
    copy, and pull repairs damaged objects. prune removes weights and optimizer states that nothing needs; manifests,
    rollouts and verdicts stay. delete --step does so for the steps of RUN (or RUN~BRANCH) that you name, and refuses those
    that something needs. delete --all removes a run that has ended, with all it recorded. Needs no server.
    CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios),
    RUN@production (see temper promote), or RUN~BRANCH@STEP (on another branch, after a rollback).

    Options:
      --keep-last N         prune: keep the newest N of each branch
      --keep-best METRIC:N  prune: keep the N best by an evaluation metric; repeatable
      --keep-every N        prune: keep every Nth step
      --step N,M-K          delete: remove the weights of these steps
      --all                 delete: remove the whole run
      --dry-run             prune, delete: only show what would be removed
      --with-pruned         push, pull: also copy weights that were pruned in the target
      --json                print one JSON object
      -h, --help            print this help

    Examples:
      temper checkpoints demo@best
      temper checkpoints demo push /mnt/backup/store
      temper checkpoints demo prune --keep-last 3 --keep-best reward:2 --dry-run
      temper checkpoints demo delete --step 3,7-20"
  `);
});

test('verify', () => {
  expect(help('verify')).toMatchInlineSnapshot(`
    "check every hash of a run, and recompute one step

    Usage: temper verify CHECKPOINT [--no-recompute] [--json]

    Reads the store, writes nothing and needs no server. The whole run is checked, and the step of CHECKPOINT is
    recomputed from its recorded rollouts on this machine; on the platform that trained it, the bytes must match. Exit
    code 1 if a check fails.
    CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios),
    RUN@production (see temper promote), or RUN~BRANCH@STEP (on another branch, after a rollback).

    Options:
      --no-recompute  only check hashes; needs no Python
      --json          print one JSON object
      -h, --help      print this help

    Examples:
      temper verify demo
      temper verify demo@12"
  `);
});

test('eval', () => {
  expect(help('eval')).toMatchInlineSnapshot(`
    "compare models and checkpoints on held-out scenarios, without training

    Usage: temper eval AGENT --model MODEL… [flags]

    MODEL is a CHECKPOINT or a base model on the local stack, or a hosted model: provider/model
    (openai, anthropic, gemini, openrouter, together, groq, mistral, xai, deepseek, ollama; its key is in
    PROVIDER_API_KEY), or URL#MODEL for any OpenAI-compatible server. If you pass several, all play the same
    scenarios. Prints reward, metrics, tokens, cost and latency with 95 % intervals, and writes an HTML page.
    CHECKPOINT is RUN or RUN@latest (its last step), RUN@STEP, RUN@best (highest reward on held-out scenarios),
    RUN@production (see temper promote), or RUN~BRANCH@STEP (on another branch, after a rollback).

    Options:
      --model MODEL         model or checkpoint to evaluate; repeatable (also --base-model)
      --scenarios N         maximum number of scenarios [the run's, or 200]
      --base-url URL        OpenAI-compatible server that serves every MODEL, instead of the local stack
      --key-env NAME        environment variable that holds the key of --base-url or URL#MODEL
      --price MODEL=IN/OUT  US dollars per million input and output tokens; repeatable
      --temperature X       sampling temperature [the run's, or 1; for a hosted model its own]
      --max-tokens N        token limit of each hosted call, whatever the agent sets; for reasoning models
      --chat-template FILE  Jinja chat template [that of the checkpoint's run, or the model's own]
      --seed N              seed of the engine's sampling and of the agent's random, but not of a hosted model [the run's, or 1]
      --concurrency N       scenarios played at once [64]
      --out FILE            output file [.temper/reports/eval-AGENT.html]
      --json                print one JSON object
      -h, --help            print this help

    Examples:
      temper eval examples/tic-tac-toe/agent.ts --model demo@best --model demo@0 --model pocket
      temper eval agent.ts --model demo --model openai/gpt-5 --price openai/gpt-5=1.25/10 --max-tokens 2000
      temper eval agent.ts --model my-model --base-url http://127.0.0.1:8000/v1 --key-env MY_KEY"
  `);
});

test('dev', () => {
  expect(help('dev')).toMatchInlineSnapshot(`
    "run the local stack in the foreground: Temporal server and UI, workers, GPU worker

    Usage: temper dev [flags]

    Runs until Ctrl-C, or joins a local stack that is already running. The stack stops with the last command using it.

    Options:
      --agent FILE        also play this agent, so that its runs continue
      --engine NAME       what samples: embedded or vllm [vllm on a GPU with vLLM installed, else embedded]
      --device NAME       where the local stack computes: auto, cpu, cuda or cuda:N [auto: a GPU if there is one]
      --dtype NAME        type of the base model: auto, float32 or bfloat16 [auto: bfloat16 on a GPU, else float32]
      --load-in-4bit      load the linear layers of the base model in 4 bits per weight (NF4); not with vLLM
      --devices N         how many devices train: GPUs, or processes on the CPU [1]
      --shard-base-model  each of several --devices holds a part of the base model, which need not fit into one of them
      --ui-port N         port of Temporal's UI [a free one, remembered]
      --engine-port N     port of the engine [a free one, remembered]
      --metrics-port N    port of /metrics for Prometheus [metrics.port of temporal.config.ts]
      -h, --help          print this help"
  `);
});

test('worker', () => {
  expect(help('worker')).toMatchInlineSnapshot(`
    "run a TypeScript worker for a deployment: workflows and the agents you pass

    Usage: temper worker [--agent FILE]… [--metrics-port N]

    Finds Temporal by TEMPORAL_* or temporal.toml, and store and engine by temporal.config.ts or TEMPER_STORE,
    TEMPER_ENGINE_URL and TEMPER_ENGINE_KEY. On SIGTERM or Ctrl-C it finishes in-flight work, then exits.

    Options:
      --agent FILE      agent to play; repeatable
      --metrics-port N  port of /metrics for Prometheus [metrics.port of temporal.config.ts]
      -h, --help        print this help"
  `);
});

test('setup', () => {
  expect(help('setup')).toMatchInlineSnapshot(`
    "install an engine that Temper does not bring along: vllm

    Usage: temper setup ENGINE [--build NAME]

    Installs vLLM into an environment of its own in the cache (TEMPER_CACHE), from locked packages. Linux only.
    The CPU build takes about 5 GB of downloads where PyTorch has no CPU build, else 1 GB. For an AMD GPU, install
    vLLM's ROCm build yourself and set TEMPER_VLLM_PYTHON to its Python.

    Options:
      --build NAME  which build of vLLM: cpu or cuda [cuda if nvidia-smi finds a GPU, else cpu]
      -h, --help    print this help

    Examples:
      temper setup vllm
      temper setup vllm --build cuda"
  `);
});
