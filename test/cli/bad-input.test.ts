/** Everything a person can get wrong: one line that says what to do, exit code 2, and nothing left behind. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { write, writeAgent, writeModel } from './agents.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn, runCli } from './run-cli.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let project: string;
let agent: string;

beforeEach(async () => {
  project = temporaryProject();
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
  test.each([
    ['trian', 'unknown command trian; did you mean temper train?'],
    ['show demo --yaml', 'unknown flag --yaml; see temper show --help'],
    ['show demo --json=yes', '--json takes no value, got "yes"; write --json alone'],
    ['show', 'RUN is missing; usage: temper show RUN [--follow] [--json]'],
    ['show a b', 'unexpected argument "b"; usage: temper show RUN [--follow] [--json]'],
  ])('temper %s', async (line, message) => {
    expect(await complaint(line.split(' '))).toContain(`temper: ${message}`);
  });

  /** What comes of flags beside the agent and its base model; the second part is that of an answer. */
  test.each([
    ['--grop-size 16', 'unknown flag --grop-size', 'did you mean --group-size?'],
    ['--run --steps 3', '--run needs a value', 'write --run NAME'],
    ['--group-size 1', '--group-size must be at least 2 (an advantage is relative to its group), got 1', '--help'],
    ['--steps ten', '--steps must be a whole number, got "ten"', 'pass --steps N'],
    ['--learning-rate ', '--learning-rate must be a number, got ""', 'pass --learning-rate X'],
    ['--loss grpo', '--loss must be one of cispo, ppo, gspo, ', 'got "grpo"; pass --loss cispo'],
    ['--device mps', '--device must be auto, cpu, cuda or cuda:N, got "mps"', 'pass --device cpu'],
    ['--warmup-steps 100', '--warmup-steps must be fewer than steps, got 100', 'lower --warmup-steps to 99'],
    ['--dual-clip 3', '--dual-clip 3 has no effect with the loss cispo (only ppo uses it)', 'leave --dual-clip out'],
    ['--loss ppo', '--loss ppo has no effect: with a single update', 'set passes or --mini-batches to 2 or more'],
    [
      '--epsilon-low 0.5 --epsilon-high 0.5',
      '--epsilon-low 0.5 and --epsilon-high 0.5 have no effect: with a single update',
      'or leave --epsilon-low and --epsilon-high out',
    ],
  ])('temper train %s', async (flags, rule, remedy) => {
    const said = await train(...flags.split(' '));
    expect(said).toContain(`temper: ${rule}`);
    expect(said).toContain(remedy);
  });

  test.each(['../demo', 'Demo', '', '.hidden', 'a b', 'a'.repeat(64)])('the run name %j', async (name) => {
    expect(await train('--run', name)).toContain('--run must be lower case letters, digits and ._-');
  });
});

describe("an agent's file", () => {
  /** What the file holds, and what is said of it; the remedy that every complaint has is not repeated. */
  test.each<[text: string | Parameters<typeof writeAgent>[1], said: string]>([
    ["export default { name: 'guess' };\n", 'must have defineAgent({ … }) as its default export'],
    [
      'const nothing: any = null;\n\nexport default nothing.agent;\n',
      "cannot be loaded: TypeError: Cannot read properties of null (reading 'agent')",
    ],
    ["import '@nobody/openai/chat';\nexport default 1;\n", '; install it with npm install @nobody/openai'],
    [{ scenarios: '[]' }, 'the agent guess has no scenarios (PROJECT/agent.ts); add at least one'],
    [{ scenarios: "[{ id: 'only' }]" }, 'the agent guess has one scenario (PROJECT/agent.ts), but a tenth is held out'],
    [
      { scenarios: "[{ id: 'a' }, { id: 'a' }]" },
      'unique, among evalScenarios too, got "a" at scenarios[0] and scenarios[1]',
    ],
    [
      { scenarios: "csv('rows.csv', { separator: ';' })" },
      'csv has the options map, delimiter, got separator; correct',
    ],
    [
      { scenarios: "csv('rows.csv', { map: (row) => ({ id: row.id.no.thing }) })" },
      "it threw at line 2 of PROJECT/rows.csv: TypeError: Cannot read properties of undefined (reading 'thing')",
    ],
  ])('%j', async (text, said) => {
    await write(join(project, 'rows.csv'), 'id\na\n');
    await (typeof text === 'string' ? writeFile(agent, text) : writeAgent(project, text));
    expect(await train()).toContain(said);
  });

  test.each([
    ['nope.mjs', 'does not exist; '],
    ['wrong.mjs', "cannot be loaded: SyntaxError: Unexpected token '}' (line 3)"],
    ['wrong.cjs', "cannot be loaded: SyntaxError: Unexpected token '}' (line 3)"],
    ['importing.mjs', "cannot be loaded: SyntaxError: Unexpected token '}' (PROJECT/wrong.mjs:3)"],
  ])('%s', async (file, said) => {
    for (const wrong of ['wrong.mjs', 'wrong.cjs'])
      await writeFile(join(project, wrong), 'const a = 1;\n\nconst b = [,,}];\n');
    await writeFile(join(project, 'importing.mjs'), "import './wrong.mjs';\n");
    const line = await complaint(['train', file, '--base-model', 'pocket']);
    expect(line).toContain(`temper: the agent file PROJECT/${file} ${said}`);
  });
});

describe('the base model', () => {
  const TEMPLATE = 'chat_template.jinja';
  beforeEach(async () => {
    await writeModel(join(project, 'bare'), ['config.json', 'model.safetensors', 'tokenizer_config.json']);
    await writeModel(join(project, 'pickled'), ['config.json', 'pytorch_model.bin', TEMPLATE]);
  });

  test.each([
    ['', '--base-model is missing; pass --base-model pocket to try it on this machine, a folder, '],
    ['--base-model ./none', "the base model's folder PROJECT/none does not exist; pass an existing one"],
    ['--base-model pockte', 'unknown base model "pockte": it is neither a folder nor one of pocket, pocket-tools; '],
    ['--base-model ./bare', 'the base model in PROJECT/bare has no chat template (agents speak in messages); pass '],
    ['--base-model ./pickled', 'folder PROJECT/pickled has no .safetensors file (pickled weights are not loaded); '],
  ])('temper train agent.ts %s', async (flags, message) => {
    expect(await complaint(['train', agent, ...flags.split(' ').filter(Boolean)])).toContain(message);
  });
});

describe('the run', () => {
  test('a name in use with another configuration says what differs', async () => {
    await writeFixtureRun(project, { run: 'demo', agent: 'guess', steps: 4 });
    expect(await train('--run', 'demo', '--steps', '5', '--lora-rank', '8')).toBe(
      'temper: the run demo exists with another configuration (recorded → requested): --steps: 4 → 5, --lora-rank: 16 → 8; pass another --run, or the recorded values',
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

  test.each(['show', 'report'])('temper %s of a run that does not exist', async (name) => {
    const store = 'the store file://PROJECT/.temper/store (it has none yet)';
    expect(await complaint([name, 'nope'])).toBe(`temper: no run nope in ${store}; start it with temper train`);
  });

  test.each(['stop', 'pause', 'resume', 'set'])('temper %s without a server', async (name) => {
    expect(await complaint([name, 'demo', ...(name === 'set' ? ['steps=9'] : [])])).toBe(
      'temper: no local stack is running in this project, and TEMPORAL_ADDRESS is not set; start a local stack with temper dev or temper train',
    );
  });
});

describe('steering', () => {
  test.each([
    ['set demo', 'KEY=VALUE is missing; usage: temper set RUN KEY=VALUE… [--reason TEXT] [--json]'],
    ['set demo steps', 'a setting must be KEY=VALUE, got "steps"; pass for example steps=300'],
    ['set demo steps=0', 'steps must be a whole number of at least 1, got 0; pass another value'],
    ['set demo step=9', 'unknown setting "step", did you mean steps?'],
    ['set demo seed=9', 'seed cannot be changed after a run has started, only learningRate, temperature, '],
    ['set demo steps=9 steps=10', 'steps is given twice; pass it once'],
    ['rollback demo', '--step is missing; pass --step N, the last step that is kept'],
    ['rollback demo --step -1', '--step must be a whole number of at least 0, got "-1"; pass --step N'],
    [
      'rollback demo --step 2 --set learningRate=fast',
      'learningRate must be a number of at least 0, got "fast"; pass a number',
    ],
  ])('temper %s', async (line, message) => {
    expect(await complaint(line.split(' '))).toContain(`temper: ${message}`);
  });
});

describe('the surroundings', () => {
  test('a store that cannot be', async () => {
    await writeFile(join(project, '.temper'), 'a file where a folder should be');
    expect(await train()).toContain('the store in PROJECT/.temper/store refused (ENOTDIR): a file stands where');
  });

  test('a report that cannot be written', async () => {
    await writeFixtureRun(project, { steps: 2 });
    const said = await complaint(['report', 'demo', '--out', 'package.json/report.html']);
    expect(said).toContain('--out must be a file that can be written, got PROJECT/package.json/report.html (EEXIST)');
  });

  test('an error that nothing handles is said as such', async () => {
    const config = "Promise.reject(new Error('nobody waits'));\nexport default {};\n";
    await writeFile(join(project, 'temporal.config.ts'), config);
    const command = [join(ROOT, 'cli/temper.js'), 'runs'];
    const { status, stderr } = spawnSync(process.execPath, command, { cwd: project, encoding: 'utf8' });
    const said = 'temper: nothing handles this error, which ends the command\nError: nobody waits\n';
    expect([status, stderr]).toEqual([1, expect.stringContaining(said)]);
  });

  test('a TEMPORAL_ADDRESS that nobody answers', async () => {
    const said = await complaint(['stop', 'demo'], { TEMPORAL_ADDRESS: '127.0.0.1:1' });
    expect(said).toContain('no Temporal server answers at 127.0.0.1:1 (TEMPORAL_ADDRESS or temporal.toml); start one');
  });
});
