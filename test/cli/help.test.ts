import { expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands/index.ts';
import { commandHelp } from '../../cli/help.ts';
import { closestName } from '../../cli/parse.ts';
import { temporaryFolder } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

const help = (name: string) => commandHelp(COMMANDS.find((command) => command.name === name)!);

test('temper alone lists every command', async () => {
  const { exitCode, stdout } = await runCli(await temporaryFolder(), []);
  expect(exitCode).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "temper 0.1.0: trains LLM agents with reinforcement learning, and loses nothing

    Usage: temper COMMAND [flags]

    Commands:
      train        start a run, or go on with it; shows progress until it ends
      fork         start a run from a checkpoint of another one; copies nothing
      runs         list the runs of this project
      show         one run's state, its results, and what it waits for
      watch        live view of a run; needs no server
      pause        finish the step in hand, then begin none until resumed
      resume       let a paused run go on
      set          change settings of a run under way, from its next step on
      rollback     go back to a finished step and train what follows anew, on a branch of its own
      stop         finish the step in hand, keep the result, end the run
      cancel       end a run at once; committed steps stay
      report       write one self-contained HTML file: curves, groups side by side, episodes
      schedule     retrain again and again, each time from the newest checkpoint
      checkpoints  a run's checkpoints: list them, copy the run to or from another store, drop old weights
      verify       re-read a whole run, check every hash, and re-compute a step
      eval         play held-out scenarios without training, with any models or checkpoints side by side
      dev          the local stack in the foreground: Temporal server and UI, workers, GPU worker
      worker       a TypeScript worker for a deployment: runs workflows, and plays the agents it is given
      gpu-worker   a GPU worker for a machine of its own: serves the model, and trains it
      doctor       check server, queues, engine, store and environments; says what to do

    temper COMMAND --help says more. Exit codes: 0 done, 1 failed, 2 wrong input."
  `);
});

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
    "change settings of a run under way, from its next step on

    Usage: temper set RUN KEY=VALUE… [--reason TEXT]

    KEY is one of learningRate, temperature, steps, groupSize, evalEvery, maxJudgeUsd, or the name of its flag.
    max-judge-usd is what lets a run go on that paused because its judge had cost enough.
    What was set holds until it is set again, across a rollback too. The step in hand finishes as it was planned.

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this

    Examples:
      temper set demo learningRate=1e-5
      temper set demo steps=300 evalEvery=50 --reason "it still learns""
  `);
});

test('rollback', () => {
  expect(help('rollback')).toMatchInlineSnapshot(`
    "go back to a finished step and train what follows anew, on a branch of its own

    Usage: temper rollback RUN --step N [--set KEY=VALUE] [--reason TEXT]

    A run under way gives up the step in hand. A run that has ended is started again. Nothing is overwritten or deleted:
    the steps after N stay on their branch, those trained anew have other seeds.

    Options:
      --step N         the last step that is kept
      --set KEY=VALUE  change a setting with it, as temper set does
      --reason TEXT    recorded with the run
      -h, --help       print this

    Examples:
      temper rollback demo --step 40
      temper rollback demo --step 40 --set learningRate=1e-5"
  `);
});

test('pause', () => {
  expect(help('pause')).toMatchInlineSnapshot(`
    "finish the step in hand, then begin none until resumed

    Usage: temper pause RUN [--reason TEXT]

    The step in hand finishes, with the evaluation due after it. temper stop and temper cancel work meanwhile.

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this"
  `);
});

test('train', () => {
  expect(help('train')).toMatchInlineSnapshot(`
    "start a run, or go on with it; shows progress until it ends

    Usage: temper train AGENT [--run NAME] --base-model MODEL [flags]

    AGENT is a file that exports defineAgent({ … }) by default. The run goes on where it was if its name exists;
    a run that is complete shows its result. Ctrl-C detaches (exit code 130): the same command goes on.

    Options:
      --run NAME                     name of the run; absent: the agent's name
      --base-model NAME              pocket, pocket-tools, a folder, or a name of the Hugging Face hub
      --seed N                       seed of everything that is drawn [1]
      --steps N                      optimizer steps [100]
      --groups-per-step N            scenarios played in one step [8]
      --group-size N                 attempts at each scenario [8]
      --minimum-group-size N         attempts a group must have left to be trained [2]
      --replacement-rounds N         how often a step deals fresh scenarios for groups whose rewards are all equal [1]
      --max-scenarios N              at most so many training scenarios are read [10000]
      --eval-scenarios N             at most so many held-out scenarios are played [200]
      --eval-every N                 evaluate every n steps besides before and after; 0: only those two [0]
      --learning-rate X              learning rate of AdamW [0.00005]
      --learning-rate-schedule NAME  constant, linear or cosine ["constant"]
      --final-learning-rate-share X  share of the learning rate left at the last step
      --warmup-steps N               steps over which the learning rate rises [0]
      --weight-decay X               weight decay of AdamW [0]
      --max-grad-norm X              the gradient is clipped to this norm [1]
      --beta1 X                      first moment of AdamW [0.9]
      --beta2 X                      second moment of AdamW [0.99]
      --adam-epsilon X               epsilon of AdamW [1e-8]
      --lora-rank N                  rank of the adapter [16]
      --lora-alpha X                 scale of the adapter: alpha / rank [32]
      --lora-target-modules A,B      names, comma-separated; absent: every linear layer but the head
      --temperature X                of every call while training and evaluating [1]
      --max-tokens N                 sampled by a call that names no limit of its own [512]
      --max-calls-per-attempt N      an attempt that makes more calls fails [64]
      --attempt-timeout-ms N         an attempt that takes longer fails [600000]
      --call-timeout-ms N            deadline of one call [120000]
      --call-retry-budget-ms N       how long a call is retried while the engine is away [300000]
      --loss NAME                    cispo; ppo and importance_sampling have no effect yet, and are refused ["cispo"]
      --epsilon-low X                lower end of the range that the ratio is clipped to; no effect yet, refused
      --epsilon-high X               upper end of that range; no effect yet, refused
      --dual-clip X                  ppo's bound for negative advantages; no effect yet, refused
      --advantage-scale NAME         none, group-std or batch-std ["none"]
      --leave-one-out                compare an attempt with the mean of the others
      --truncated NAME               attempts cut off at their token limit: mask, penalise or keep ["mask"]
      --max-logprob-mismatch X       sampler and trainer may differ by so much (k3) before a step is refused [0.001]
      --micro-batch-tokens N         tokens in one micro-batch: memory against speed [16384]
      --judge NAME                   provider/model that judges instead of the one that the agent names
      --max-judge-usd X              the run pauses before its judge costs more than this in all
      --continue-as-new-every N      steps after which the workflow starts a fresh history
      --device NAME                  where the local stack computes: auto, cpu, cuda or cuda:N ["auto": a GPU if there is one]
      --dtype NAME                   type of the base model: auto, float32 or bfloat16 ["auto": bfloat16 on a GPU, else float32]
      -h, --help                     print this

    Examples:
      temper train examples/tic-tac-toe/agent.ts --base-model pocket --steps 100
      temper train agent.ts --base-model Qwen/Qwen3-4B --steps 200 --group-size 8"
  `);
});

test('runs', () => {
  expect(help('runs')).toMatchInlineSnapshot(`
    "list the runs of this project

    Usage: temper runs [--json]

    Options:
      --json      print one JSON object
      -h, --help  print this"
  `);
});

test('show', () => {
  expect(help('show')).toMatchInlineSnapshot(`
    "one run's state, its results, and what it waits for

    Usage: temper show RUN [--json]

    Reads the store; needs no server. Where one answers within two seconds, its pending activities are shown too.

    Options:
      --json      print one JSON object
      -h, --help  print this"
  `);
});

test('watch', () => {
  expect(help('watch')).toMatchInlineSnapshot(`
    "live view of a run; needs no server

    Usage: temper watch RUN

    Follows the run until it ends. Ctrl-C ends the watching, not the run.

    Options:
      -h, --help  print this"
  `);
});

test('stop', () => {
  expect(help('stop')).toMatchInlineSnapshot(`
    "finish the step in hand, keep the result, end the run

    Usage: temper stop RUN [--reason TEXT]

    Options:
      --reason TEXT  recorded with the run
      -h, --help     print this"
  `);
});

test('cancel', () => {
  expect(help('cancel')).toMatchInlineSnapshot(`
    "end a run at once; committed steps stay

    Usage: temper cancel RUN

    The step in hand is given up. To finish it first, use temper stop.

    Options:
      -h, --help  print this"
  `);
});

test('report', () => {
  expect(help('report')).toMatchInlineSnapshot(`
    "write one self-contained HTML file: curves, groups side by side, episodes

    Usage: temper report RUN [--out FILE]

    Reads the store; needs no server. The file opens offline and loads nothing.

    Options:
      --out FILE  where to write it; absent: .temper/reports/RUN.html
      -h, --help  print this"
  `);
});

test('checkpoints', () => {
  expect(help('checkpoints')).toMatchInlineSnapshot(`
    "a run's checkpoints: list them, copy the run to or from another store, drop old weights

    Usage: temper checkpoints RUN [push STORE | pull STORE | prune --keep-last N] [--json]

    Alone it lists committed steps. push and pull copy the whole run between the project's store and STORE, a folder or a
    URI: what is there is not copied again, an interrupted copy goes on, and pull repairs what is broken here. prune
    removes weights and optimizer states that nothing needs; manifests, rollouts and verdicts stay. Needs no server.

    Options:
      --keep-last N         prune: keep the newest N of each branch
      --keep-best METRIC:N  prune: keep the N highest by a metric of their evaluation; may be given several times
      --keep-every N        prune: keep every Nth step
      --dry-run             prune: only say what would go
      --with-pruned         push, pull: bring back what was pruned in the target
      --json                print one JSON object
      -h, --help            print this

    Examples:
      temper checkpoints demo push /mnt/backup/store
      temper checkpoints demo prune --keep-last 3 --keep-best reward:2 --dry-run"
  `);
});

test('verify', () => {
  expect(help('verify')).toMatchInlineSnapshot(`
    "re-read a whole run, check every hash, and re-compute a step

    Usage: temper verify RUN [--step N] [--branch B] [--no-recompute] [--json]

    Reads the store and writes nothing; needs no server. A step is re-computed from its recorded rollouts on this
    machine: on the platform that trained it the bytes must agree. Exit code 1 where something is wrong.

    Options:
      --step N        re-compute this step; absent: the last one
      --branch B      of this branch; absent: the newest
      --no-recompute  re-compute none: needs no Python
      --json          print one JSON object
      -h, --help      print this"
  `);
});

test('eval', () => {
  expect(help('eval')).toMatchInlineSnapshot(`
    "play held-out scenarios without training, with any models or checkpoints side by side

    Usage: temper eval AGENT --model MODEL… [--scenarios N] [--json]

    MODEL is run@step, a run (its last step) or a base model on the local stack, or a hosted model: provider/model
    (openai, anthropic, gemini, openrouter, together, groq, mistral, xai, deepseek, ollama; the key is in
    PROVIDER_API_KEY) or URL#MODEL for any OpenAI-compatible server. Named several times, all play the same
    scenarios. Prints reward, metrics, tokens, cost and latency with 95 % intervals, and writes an HTML page.

    Options:
      --model MODEL         who plays; may stand several times
      --scenarios N         at most so many scenarios; absent: those of the run, or 200
      --base-url URL        an OpenAI-compatible server that has every MODEL, instead of the local stack
      --key-env NAME        environment variable that holds its key, and that of URL#MODEL
      --price MODEL=IN/OUT  US dollars for a million tokens, read and written
      --temperature X       absent: the run's, or 1; a hosted model's own
      --max-tokens N        of a hosted model's call, whatever the agent says: for models that think first
      --seed N              of what is drawn: the engine's answers (not a hosted model's), and the agent's random; absent: the run's, or 1
      --concurrency N       scenarios played at once; absent: 64
      --out FILE            where to write the page; absent: .temper/reports/eval-AGENT.html
      --json                print one JSON object
      -h, --help            print this

    Examples:
      temper eval examples/tic-tac-toe/agent.ts --model demo --model demo@0 --model pocket
      temper eval agent.ts --model demo --model openai/gpt-5 --price openai/gpt-5=1.25/10 --max-tokens 2000
      temper eval agent.ts --model my-model --base-url http://127.0.0.1:8000/v1 --key-env MY_KEY"
  `);
});

test('dev', () => {
  expect(help('dev')).toMatchInlineSnapshot(`
    "the local stack in the foreground: Temporal server and UI, workers, GPU worker

    Usage: temper dev [--agent FILE] [--device NAME] [--dtype NAME] [--ui-port N] [--engine-port N]

    Runs until Ctrl-C, and takes everything it started with it. A stack that runs already is joined.

    Options:
      --agent FILE     play this agent too, so that its runs go on
      --device NAME    where the local stack computes: auto, cpu, cuda or cuda:N ["auto": a GPU if there is one]
      --dtype NAME     type of the base model: auto, float32 or bfloat16 ["auto": bfloat16 on a GPU, else float32]
      --ui-port N      port of Temporal's UI; absent: a free one, remembered
      --engine-port N  port of the engine; absent: a free one, remembered
      -h, --help       print this"
  `);
});

test('worker', () => {
  expect(help('worker')).toMatchInlineSnapshot(`
    "a TypeScript worker for a deployment: runs workflows, and plays the agents it is given

    Usage: temper worker [--agent FILE]…

    Temporal is found by TEMPORAL_* or temporal.toml; store and engine by temporal.config.ts, or TEMPER_STORE,
    TEMPER_ENGINE_URL and TEMPER_ENGINE_KEY. Runs until it is told to end; then it drains.

    Options:
      --agent FILE  an agent to play; may be given several times
      -h, --help    print this"
  `);
});

test('doctor', () => {
  expect(help('doctor')).toMatchInlineSnapshot(`
    "check server, queues, engine, store and environments; says what to do

    Usage: temper doctor [--agent NAME]… [--json]

    Exit code 1 where a check failed. What concerns nothing that runs now is shown, and is no failure.

    Options:
      --agent NAME  look at this agent's queue too; may be given several times
      --json        print one JSON object
      -h, --help    print this"
  `);
});

test('a typo is near one name, nonsense near none', () => {
  expect(closestName('grop-size', ['group-size', 'groups-per-step'])).toBe('group-size');
  expect(closestName('xyzzy', ['group-size', 'steps'])).toBeNull();
});
