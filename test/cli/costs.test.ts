import { expect, test } from 'vitest';
import { addToCurve } from '../../store/records/runs/curve.ts';
import { summary, writeFixtureRun } from './fixture-store.ts';
import { runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const usage = { promptTokens: 4000, cachedPromptTokens: 1000, sampledTokens: 500 };
const total = { seconds: 125, usage, usd: { gpu: 0.25, judge: 1.5 }, unpriced: ['ollama/qwen'], maxCostUsd: 5 };

async function projectWith(state: object): Promise<string> {
  const project = temporaryFolder();
  const store = await writeFixtureRun(project, { steps: 2, state });
  const priced = [1, 2].map((step) => {
    const usd = step === 1 ? { gpu: 0.125 } : { gpu: 0.125, judge: 1.5 };
    return { ...summary(step, 3), usage, costs: { seconds: 60, usd, cumulativeUsd: step === 1 ? 0.125 : 1.75 } };
  });
  await addToCurve(store, 'demo', { branch: 0, step: 3 }, [...priced, summary(3, 3)], () => undefined);
  await store.replace('runs/demo/state.json', Buffer.from(JSON.stringify({ ...(await stateOf(store)), step: 3 })));
  return project;
}

const stateOf = async (store: Awaited<ReturnType<typeof writeFixtureRun>>): Promise<object> =>
  JSON.parse(Buffer.from((await store.read('runs/demo/state.json'))!).toString()) as object;

test('costs of a run: each step by cause, then the sums, of which the last step recorded none', async () => {
  const project = await projectWith({ costs: total });
  const { stdout } = await runCli(project, ['costs', 'demo']);
  expect(stdout).toMatchInlineSnapshot(`
    "step  time       tokens                                  gpu     judge  step cost  so far
    1     1 min 0 s  4000 prompt (25 % cached), 500 sampled  $0.125  –      $0.125     $0.125
    2     1 min 0 s  4000 prompt (25 % cached), 500 sampled  $0.125  $1.50  $1.63      $1.75
    3     –          –                                       –       –      –          –
    time    2 min 5 s
    tokens  4000 prompt (25 % cached), 500 sampled
    cost    $1.75 of $5.00 (hardware $0.25, judge $1.50), without ollama/qwen (unknown price)"
  `);
  const { stdout: json } = await runCli(project, ['costs', 'demo', '--json']);
  expect(JSON.parse(json)).toMatchObject({ run: 'demo', total, steps: [{ step: 1 }, { step: 2 }, { costs: null }] });
});

test('a run without prices says how to set them, and one of which nothing is recorded says so', async () => {
  const { stdout } = await runCli(
    await projectWith({ costs: { ...total, usd: {}, unpriced: [], maxCostUsd: undefined } }),
    ['costs', 'demo'],
  );
  expect(stdout).not.toContain('so far');
  expect(stdout).toContain('cost    nothing of it has a price; pass --gpu-usd-per-hour');
  expect((await runCli(await projectWith({}), ['costs', 'demo'])).stdout).toBe('demo has recorded no costs yet');
});
