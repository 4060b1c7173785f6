/** A run that was pulled from somebody else is shown, and neither makes markup of a report nor controls a terminal. */
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { markup, htmlText } from '../../cli/pages/html.ts';
import { renderLive } from '../../cli/watch/live.ts';
import type { RunState } from '../../core/contract/contract.ts';
import { printable } from '../../core/text/printable.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { decodeJson, encodeJson } from '../../store/bytes/json.ts';
import { decodeRollouts, encodeRollouts, type Rollouts } from '../../store/records/groups/trajectories.ts';
import { evaluation, fixtureState, summary, writeFixtureRun } from '../cli/fixture-store.ts';
import { runCli } from '../cli/run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const SCRIPT = '<script>alert(1)</script>';
const ESCAPES = '\u001b]0;owned\u0007\u001b[2J\u009b31m\rok\u202e';
const CONTROLS = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/u;

type Json = Record<string, unknown>;

async function spoil(project: string, key: string, change: (value: Json) => Json): Promise<void> {
  const store = new FileStore(join(project, '.temper', 'store'));
  const bytes = await store.read(key);
  await store.replace(key, encodeJson(change(decodeJson(bytes!, key) as Json)));
}

test('nothing but the template itself makes markup, whatever an object of a file is called', () => {
  const forged = { html: SCRIPT, text: SCRIPT } as unknown as string;
  expect(htmlText(markup`<p>${forged}${[forged]}</p>`)).not.toContain('<script>');
});

const RUN = 'runs/demo/run.json';
const STATE = 'runs/demo/state.json';
const GROUP = 'runs/demo/branches/0/steps/1/groups/0';

test.each([
  [STATE, 'failure', { html: SCRIPT }],
  [STATE, 'notes', [{ html: SCRIPT }]],
  [STATE, 'baseModel', SCRIPT],
  [STATE, 'run', SCRIPT],
  [STATE, 'evals', { length: 1, map: SCRIPT }],
  [STATE, 'lineage', SCRIPT],
  [RUN, 'config', { run: 'demo' }],
  [RUN, 'loop', SCRIPT],
  [`${GROUP}.judged.json`, 'explanations', [{ html: SCRIPT }]],
  [`${GROUP}.judged.json`, 'rewards', SCRIPT],
])('%s whose %s is %j is refused by name', async (key, field, value) => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 2 });
  await spoil(project, key, (file) => ({ ...file, [field]: value }));
  const { exitCode, stderr } = await runCli(project, ['report', 'demo']);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: expect.stringContaining(`temper: ${key} is not as Temper writes it`) as string,
  });
});

test('a state that this version does not know is refused by name, as one of a later version', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 2, state: { state: `"><script>` as RunState['state'] } });
  const { exitCode, stderr } = await runCli(project, ['report', 'demo']);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringContaining(`temper: ${STATE} was made by a later version of Temper (state: `) as string,
  });
});

test('what a later version adds, at any level, is no obstacle', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 2 });
  const more = { added: { later: 1 } };
  await spoil(project, RUN, ({ config, ...file }) => {
    const { train, ...settings } = config as Record<string, object>;
    return { ...file, ...more, config: { ...settings, ...more, train: { ...train, ...more } } };
  });
  const evals = [{ ...evaluation(0, 0.5, 0), ...more }];
  await spoil(project, STATE, (state) => ({ ...state, ...more, evals }));
  for (const command of [['show'], ['show', '--follow'], ['report'], ['checkpoints']])
    expect(await runCli(project, [...command, 'demo'])).toMatchObject({ exitCode: 0, stderr: '' });
  await spoil(project, STATE, (state) => ({ ...state, evals: [{ ...evals[0], reward: SCRIPT }] }));
  expect((await runCli(project, ['show', 'demo'])).stderr).toContain(
    `${STATE} is not as Temper writes it (evals.0.reward`,
  );
});

test.each([
  ['run.json', 'mine', 'runs/demo', 'runs/mine', 'rename the folder runs/mine to runs/demo, or restore it from a copy'],
  ['state.json', 'demo', 'runs/other/state.json', 'runs/demo/state.json', 'it is only for display: delete it,'],
])('a %s of another run is refused, with what to do', async (file, run, from, to, remedy) => {
  const project = temporaryFolder();
  for (const name of ['demo', 'other']) await writeFixtureRun(project, { run: name, steps: 2 });
  const store = join(project, '.temper', 'store');
  await rename(join(store, from), join(store, to));
  for (const command of [['show', run], ['report', run], ['show', run, '--follow'], ['runs']]) {
    const { exitCode, stderr } = await runCli(project, command);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`temper: runs/${run}/${file} must be of the run ${run}, but it is of the run `);
    expect(stderr).toContain(remedy);
  }
});

test('a broken run hides no other from the list of runs', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 2 });
  const store = new FileStore(join(project, '.temper', 'store'));
  await store.replace('runs/pulled/run.json', encodeJson({ schema: 1, config: SCRIPT }));
  const { exitCode, stdout, stderr } = await runCli(project, ['runs']);
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 1,
    stdout: expect.stringContaining('demo') as string,
    stderr: expect.stringContaining('runs/pulled/run.json is not as Temper writes it') as string,
  });
});

test('rollouts with markup where text should be are refused by name', async () => {
  const project = temporaryFolder();
  await writeFixtureRun(project, { steps: 2 });
  const store = new FileStore(join(project, '.temper', 'store'));
  const key = `${GROUP}.rollouts.jsonl.gz`;
  const { header, attempts } = await decodeRollouts((await store.read(key))!, key);
  const [first, ...others] = attempts;
  const spoiled = { header, attempts: [{ ...first, logs: [{ html: SCRIPT }] }, ...others] } as unknown as Rollouts;
  await store.replace(key, await encodeRollouts(spoiled));
  expect((await runCli(project, ['report', 'demo'])).stderr).toContain(`${key} is not as Temper writes it (logs.0`);
});

test('a report shows markup as text', async () => {
  const project = temporaryFolder();
  const state = { failure: SCRIPT, notes: [SCRIPT], evals: [{ ...evaluation(0, 0.5, 0), metrics: { [SCRIPT]: 1 } }] };
  await writeFixtureRun(project, { steps: 2, state });
  expect((await runCli(project, ['report', 'demo'])).exitCode).toBe(0);
  const page = await readFile(join(project, '.temper', 'reports', 'demo.html'), 'utf8');
  expect(page).toContain(String.raw`\u003cscript>alert(1)`);
  expect(page).not.toContain(SCRIPT);
});

test.each([['show'], ['show', '--json'], ['show', '--follow'], ['runs'], ['runs', '--json'], ['checkpoints']])(
  'temper %s prints no control characters of a run',
  async (command, ...flags) => {
    const project = temporaryFolder();
    const metrics = { [`${ESCAPES}Rate`]: 0.5 };
    const evals = [{ ...evaluation(0, 0.5, 0), metrics }];
    const state: Partial<RunState> = {
      state: 'failed',
      failure: `AgentFailed: ${ESCAPES}`,
      waitingFor: ESCAPES,
      notes: [ESCAPES],
      evals,
      evalBefore: evals[0]!,
      evalAfter: evals[0]!,
    };
    await writeFixtureRun(project, { steps: 2, state });
    const names = command === 'runs' ? [] : ['demo'];
    const { stdout, stderr } = await runCli(project, [command, ...names, ...flags]);
    expect(stdout).not.toBe('');
    expect(`${stdout}${stderr}`).not.toMatch(CONTROLS);
    if (flags.includes('--json') && command === 'show')
      expect(JSON.parse(stdout)).toMatchObject({ state: { failure: `AgentFailed: ${ESCAPES}` } });
  },
);

test('errors print no control characters of what they quote', async () => {
  const { exitCode, stderr } = await runCli(temporaryFolder(), ['show', ESCAPES]);
  expect(exitCode).toBe(2);
  expect(stderr).not.toMatch(CONTROLS);
});

test('the live view has the controls of its own alone', () => {
  const colors = {
    bold: String,
    dim: String,
    red: String,
    green: String,
    cyan: String,
    yellow: String,
    inverse: String,
  };
  const state: RunState = { ...fixtureState('demo', 2), notes: [`${ESCAPES}\nsecond line`] };
  const steps = [1, 2].map((step) => ({ ...summary(step, 2), metrics: { [ESCAPES]: 1 } }));
  const model = { run: 'demo', state, steps, status: ESCAPES, events: [ESCAPES], hint: '' };
  const screen = { columns: 80, rows: 30, colors: colors as unknown as Parameters<typeof renderLive>[1]['colors'] };
  expect(renderLive(model, screen)).not.toMatch(CONTROLS);
});

test('what is printable stays as it is', () => {
  const text = 'naïve 日本語 😀\tcolumn\nline';
  expect(printable(text)).toBe(text);
  expect(printable('a\r\nb')).toBe('a\nb');
  expect(printable('\u001b[31m')).toBe('\\u001b[31m');
});
