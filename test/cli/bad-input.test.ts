/** Everything a person can get wrong: one line that says what to do, exit code 2, and nothing left behind. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { writeAgent, writeModel } from './agents.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn, runCli } from './run-cli.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let project: string;
let agent: string;

beforeEach(async () => {
  project = await temporaryProject();
  agent = await writeAgent(project);
});

const complaint = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => complaintIn(project, args, { env });

const train = (...flags: string[]) => complaint(['train', agent, '--base-model', 'pocket', ...flags]);

test('a Node that is too old', () => {
  const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };
  const older = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.18.3'}})`;
  const { status, stderr } = spawnSync(process.execPath, ['--import', older, join(ROOT, 'cli/temper.js'), 'runs'], {
    encoding: 'utf8',
  });
  const rule = engines.node.replace(/^>=(\d+\.\d+)\.0$/, 'Node must be $1 or newer');
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr: `temper: ${rule}, got 20.18.3; install a newer one from https://nodejs.org\n`,
  });
});

describe('flags', () => {
  test('an unknown command names the nearest one', async () => {
    expect(await complaint(['trian'])).toMatchInlineSnapshot(
      `"temper: unknown command trian; did you mean temper train?"`,
    );
  });

  test('an unknown flag names the nearest one', async () => {
    expect(await train('--grop-size', '16')).toMatchInlineSnapshot(
      `"temper: unknown flag --grop-size; did you mean --group-size?"`,
    );
    expect(await complaint(['show', 'demo', '--yaml'])).toMatchInlineSnapshot(
      `"temper: unknown flag --yaml; see temper show --help"`,
    );
  });

  test('a forgotten value is not taken from the next flag', async () => {
    expect(await train('--run', '--steps', '3')).toMatchInlineSnapshot(
      `"temper: --run needs a value; write --run NAME"`,
    );
  });

  test('a value where none belongs', async () => {
    expect(await complaint(['show', 'demo', '--json=yes'])).toMatchInlineSnapshot(
      `"temper: --json takes no value, got "yes"; write --json alone"`,
    );
  });

  test('a missing or a superfluous argument', async () => {
    expect(await complaint(['show'])).toMatchInlineSnapshot(
      `"temper: RUN is missing; usage: temper show RUN [--json]"`,
    );
    expect(await complaint(['show', 'a', 'b'])).toMatchInlineSnapshot(
      `"temper: unexpected argument "b"; usage: temper show RUN [--json]"`,
    );
  });

  test('group size 1', async () => {
    expect(await train('--group-size', '1')).toMatchInlineSnapshot(
      `"temper: --group-size must be at least 2 (an advantage is relative to its group), got 1; see temper train --help"`,
    );
  });

  test('steps 0', async () => {
    expect(await train('--steps', '0')).toMatchInlineSnapshot(
      `"temper: --steps must be at least 1 (a run of no steps trains nothing), got 0; see temper train --help"`,
    );
  });

  test('a number that is none', async () => {
    expect(await train('--steps', 'ten')).toMatchInlineSnapshot(
      `"temper: --steps must be a whole number, got "ten"; pass --steps N"`,
    );
    expect(await train('--learning-rate', '')).toMatchInlineSnapshot(
      `"temper: --learning-rate must be a number, got ""; pass --learning-rate X"`,
    );
    expect(await train('--seed', '-1')).toMatchInlineSnapshot(
      `"temper: --seed must be at least 0, got -1; see temper train --help"`,
    );
  });

  test('a choice that is none', async () => {
    expect(await train('--loss', 'grpo')).toMatchInlineSnapshot(
      `"temper: --loss must be one of cispo, ppo, gspo, dppo, sapo, importance_sampling, got "grpo"; pass --loss cispo"`,
    );
    expect(await train('--device', 'mps')).toMatchInlineSnapshot(
      `"temper: --device must be auto, cpu, cuda or cuda:N, got "mps"; pass --device cpu"`,
    );
    expect(await train('--dtype', 'float16')).toMatchInlineSnapshot(
      `"temper: --dtype must be one of auto, float32, bfloat16, got "float16"; pass --dtype auto"`,
    );
  });

  test('flags that contradict each other are named as flags', async () => {
    expect(await train('--warmup-steps', '100')).toMatchInlineSnapshot(
      `"temper: --warmup-steps must be fewer than steps, got 100 of 100; lower --warmup-steps"`,
    );
    expect(await train('--dual-clip', '3')).toMatchInlineSnapshot(
      `"temper: --dual-clip 3 has no effect with the loss cispo (only ppo uses it); leave --dual-clip out"`,
    );
  });

  test('losses and ranges that have no effect in steps of one update', async () => {
    expect(await train('--loss', 'ppo')).toMatchInlineSnapshot(
      `"temper: --loss ppo has no effect: with a single update, a step trains exactly what its own policy just sampled, so every ratio is 1, nothing is clipped and all losses have the same gradient; set passes or --mini-batches to 2 or more, or --max-staleness to 1 or more, or leave --loss out"`,
    );
    expect(await train('--loss', 'importance_sampling', '--epsilon-low', '0.2')).toMatchInlineSnapshot(
      `"temper: --epsilon-low 0.2 has no effect with the loss importance_sampling (only cispo, ppo, gspo use it); leave --epsilon-low out"`,
    );
    expect(await train('--epsilon-low', '0.5', '--epsilon-high', '0.5')).toMatchInlineSnapshot(
      `"temper: --epsilon-low 0.5 and --epsilon-high 0.5 have no effect: with a single update, a step trains exactly what its own policy just sampled, so every ratio is 1, nothing is clipped and all losses have the same gradient; set passes or --mini-batches to 2 or more, or --max-staleness to 1 or more, or leave --epsilon-low and --epsilon-high out"`,
    );
    expect(await complaint(['set', 'demo', 'loss=ppo'])).toMatchInlineSnapshot(
      `"temper: loss cannot be changed after a run has started, only learningRate, temperature, steps, groupSize, evalEvery, maxJudgeUsd, gpuUsdPerHour, maxCostUsd, maxHours can; start another run with --loss"`,
    );
    const timing = ['--name', 'nightly', '--every', '1d', '--base-model', 'pocket', '--loss', 'ppo'];
    expect(await complaint(['schedule', 'create', agent, ...timing])).toContain('--loss ppo has no effect');
  });

  test.each(['a/b', '..', '../demo', 'Demo', '', '.hidden', 'a b', 'a'.repeat(64)])('the run name %j', async (name) => {
    expect(await train('--run', name)).toContain('--run must be lower case letters, digits and ._-');
  });
});

describe('the base model', () => {
  test('is not named', async () => {
    expect(await complaint(['train', agent])).toMatchInlineSnapshot(
      `"temper: --base-model is missing; pass --base-model pocket to try it on this machine, a folder, an OWNER/NAME of the Hugging Face hub, or s3://BUCKET/PREFIX"`,
    );
  });

  test('a folder that does not exist', async () => {
    expect(await complaint(['train', agent, '--base-model', './models/none'])).toMatchInlineSnapshot(
      `"temper: the base model's folder PROJECT/models/none does not exist; pass an existing one"`,
    );
  });

  test('a name that is neither a folder nor known', async () => {
    expect(await complaint(['train', agent, '--base-model', 'pockte'])).toMatchInlineSnapshot(
      `"temper: unknown base model "pockte": it is neither a folder nor one of pocket, pocket-tools; pass a folder, one of these names, an OWNER/NAME[@REVISION] of the Hugging Face hub, or s3://BUCKET/PREFIX"`,
    );
  });

  test('a folder without a chat template', async () => {
    const folder = await writeModel(join(project, 'bare'), [
      'config.json',
      'model.safetensors',
      'tokenizer_config.json',
    ]);
    expect(await complaint(['train', agent, '--base-model', folder])).toMatchInlineSnapshot(
      `"temper: the base model in PROJECT/bare has no chat template (agents speak in messages); pass one with --chat-template FILE, or add a chat_template.jinja to it"`,
    );
  });

  test('a folder with pickled weights', async () => {
    const folder = await writeModel(join(project, 'pickled'), [
      'config.json',
      'pytorch_model.bin',
      'chat_template.jinja',
    ]);
    expect(await complaint(['train', agent, '--base-model', folder])).toMatchInlineSnapshot(
      `"temper: the base model's folder PROJECT/pickled has no .safetensors file (pickled weights are not loaded); convert it to safetensors"`,
    );
  });
});

describe('the run', () => {
  test('a name in use with another configuration says what differs', async () => {
    await writeFixtureRun(project, { run: 'demo', agent: 'guess', steps: 4 });
    expect(await train('--run', 'demo', '--steps', '5', '--lora-rank', '8')).toMatchInlineSnapshot(
      `"temper: the run demo exists with another configuration (recorded → requested): --steps: 4 → 5, --lora-rank: 16 → 8; pass another --run, or the recorded values"`,
    );
  });

  test('a run keeps its separate rows, unless it is asked for trees', async () => {
    await writeFixtureRun(project, { run: 'demo', agent: 'guess', steps: 4, packing: 'rows' });
    expect(await train('--run', 'demo', '--steps', '5')).toContain('requested): --steps: 4 → 5; pass');
    expect(await train('--run', 'demo', '--steps', '4', '--packing', 'tree')).toContain(
      '--packing: "rows" → "tree"; pass',
    );
  });

  test('a complete run is shown, and flags that have no effect on it are named', async () => {
    await writeFixtureRun(project, { run: 'demo', agent: 'guess', steps: 4 });
    const args = ['train', agent, '--base-model', 'pocket', '--run', 'demo', '--steps', '4'];
    const plain = await runCli(project, args);
    const { exitCode, stdout } = await runCli(project, [...args, '--device', 'cuda:1', '--dtype', 'bfloat16']);
    expect([plain.exitCode, exitCode]).toEqual([0, 0]);
    const added = stdout.split('\n').filter((line) => !plain.stdout.split('\n').includes(line));
    expect(added).toEqual([
      'note: --device cuda:1 and --dtype bfloat16 have no effect, because a complete run computes nothing; leave them out, or pass --run NAME',
    ]);
  });

  test('a run that does not exist', async () => {
    expect(await complaint(['show', 'nope'])).toMatchInlineSnapshot(
      `"temper: no run nope in the store file://PROJECT/.temper/store (it has none yet); start it with temper train"`,
    );
    expect(await complaint(['report', 'nope'])).toMatchInlineSnapshot(
      `"temper: no run nope in the store file://PROJECT/.temper/store (it has none yet); start it with temper train"`,
    );
    expect(await complaint(['watch', 'nope'])).toMatchInlineSnapshot(
      `"temper: no run nope in the store file://PROJECT/.temper/store (it has none yet); start it with temper train"`,
    );
  });

  test('steering without a server', async () => {
    expect(await complaint(['stop', 'demo'])).toMatchInlineSnapshot(
      `"temper: no local stack is running in this project, and TEMPORAL_ADDRESS is not set; start a local stack with temper dev or temper train"`,
    );
    for (const args of [['cancel'], ['pause'], ['resume'], ['set', 'steps=9']].map(([name = '', ...rest]) => [
      name,
      'demo',
      ...rest,
    ]))
      expect(await complaint(args)).toBe(
        'temper: no local stack is running in this project, and TEMPORAL_ADDRESS is not set; start a local stack with temper dev or temper train',
      );
  });
});

describe('steering', () => {
  test.each<[string[], string]>([
    [['set', 'demo'], 'KEY=VALUE is missing; usage: temper set RUN KEY=VALUE… [--reason TEXT]'],
    [['set', 'demo', 'steps'], 'a setting must be KEY=VALUE, got "steps"; pass steps=300'],
    [['set', 'demo', 'steps=ten'], 'steps must be a whole number, got "ten"; pass steps=N'],
    [
      ['set', 'demo', 'steps=0'],
      'steps must be at least 1 (a run of no steps trains nothing), got 0; see temper set --help',
    ],
    [
      ['set', 'demo', 'group-size=1'],
      'groupSize must be at least 2 (an advantage is relative to its group), got 1; see temper set --help',
    ],
    [['set', 'demo', 'temperature=3'], 'temperature must be at most 2, got 3; see temper set --help'],
    [['set', 'demo', 'step=9'], 'unknown setting "step", did you mean steps?'],
    [
      ['set', 'demo', 'seed=9'],
      'seed cannot be changed after a run has started, only learningRate, temperature, steps, groupSize, evalEvery, maxJudgeUsd, gpuUsdPerHour, maxCostUsd, maxHours can; start another run with --seed',
    ],
    [['set', 'demo', 'steps=9', 'steps=10'], 'steps is given twice; pass it once'],
    [['rollback', 'demo'], '--step is missing; pass --step N, the last step that is kept'],
    [['rollback', 'demo', '--step', '-1'], '--step must be a whole number of at least 0, got "-1"; pass --step N'],
    [
      ['rollback', 'demo', '--step', '2', '--set', 'learningRate=fast'],
      'learningRate must be a number, got "fast"; pass --set learningRate=X',
    ],
  ])('%j', async (args, message) => {
    expect(await complaint(args)).toBe(`temper: ${message}`);
  });

  test('going back in a run that does not exist', async () => {
    expect(await complaint(['rollback', 'nope', '--step', '1'])).toContain('temper: no run nope in the store');
  });
});

describe('the surroundings', () => {
  test('a store that cannot be', async () => {
    await writeFile(join(project, '.temper'), 'a file where a folder should be');
    expect(await train()).toMatchInlineSnapshot(
      `"temper: the store in PROJECT/.temper/store refused (ENOTDIR): a file stands where a folder should be; choose another store"`,
    );
  });

  test('a report that cannot be written', async () => {
    await writeFixtureRun(project, { steps: 2 });
    expect(await complaint(['report', 'demo', '--out', 'package.json/report.html'])).toMatchInlineSnapshot(
      `"temper: cannot write the report to PROJECT/package.json/report.html (Error: EEXIST: file already exists, mkdir 'PROJECT/package.json'); choose another path with --out FILE"`,
    );
  });

  test('a TEMPORAL_ADDRESS that nobody answers', { timeout: 20_000 }, async () => {
    const started = Date.now();
    const text = await complaint(['stop', 'demo'], { TEMPORAL_ADDRESS: '127.0.0.1:1' });
    expect(text).toMatchInlineSnapshot(
      `"temper: no Temporal server answers at 127.0.0.1:1 (TEMPORAL_ADDRESS or temporal.toml); start one with temporal server start-dev --port 1, or remove the setting to let Temper start its own server"`,
    );
    expect(Date.now() - started).toBeLessThan(15_000);
  });
});
