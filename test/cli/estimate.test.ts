import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { StepSummary } from '../../core/contract/contract.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { estimateLines } from '../../cli/forecast/lines.ts';
import { forecast, type ForecastPlan } from '../../cli/forecast/forecast.ts';
import type { Measured } from '../../cli/forecast/measure.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import { write, writeAgent } from './agents.ts';
import { summary, temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

const CONFIG = defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket', steps: 10 });
const ATTEMPTS = CONFIG.groupsPerStep * CONFIG.groupSize;
const usage = { promptTokens: 100 * ATTEMPTS, cachedPromptTokens: 60 * ATTEMPTS, sampledTokens: 10 * ATTEMPTS };
const step = { usage, trainingTokens: 110 * ATTEMPTS, seconds: 12 };
const MEASURED: Measured = {
  config: CONFIG,
  steps: Array.from({ length: 10 }, () => step),
  startSeconds: 5,
  evaluation: { attempts: 50, usage: { promptTokens: 5000, cachedPromptTokens: 0, sampledTokens: 500 }, seconds: 10 },
  judging: null,
};
const PLAN: ForecastPlan = { config: CONFIG, evalScenarios: 100, state: null, judgePrice: null };

describe('a forecast', () => {
  test('is the steps of the plan at the rates of the measured ones, and its evaluations', () => {
    const { steps, evaluations, promptTokens, seconds } = forecast(MEASURED, PLAN);
    expect({ steps, evaluations }).toEqual({ steps: 10, evaluations: 2 });
    expect(promptTokens.expected).toBe(10 * usage.promptTokens + 2 * 100 * 100);
    expect(seconds.expected).toBe(10 * 12 + 2 * 20 + 5);
  });

  test('scales with the size of a step', () => {
    const config = { ...CONFIG, groupSize: 2 * CONFIG.groupSize, evalEvery: 5 };
    const { evaluations, sampledTokens, trainingTokens } = forecast(MEASURED, { ...PLAN, config });
    expect(evaluations).toBe(3);
    expect(trainingTokens.expected).toBe(20 * step.trainingTokens);
    expect(sampledTokens.expected).toBe(20 * usage.sampledTokens + 3 * 100 * 10);
  });

  test('spans the parts of the measured run, and more after few steps', () => {
    const slower = MEASURED.steps.map((each, index) => ({ ...each, seconds: index < 3 ? 24 : 12 }));
    const { seconds } = forecast({ ...MEASURED, steps: slower }, PLAN);
    expect([seconds.low < 10 * 12 + 45, seconds.high > 10 * 20]).toEqual([true, true]);
    const width = ({ low, high }: { low: number; high: number }) => high - low;
    const few = forecast({ ...MEASURED, steps: MEASURED.steps.slice(0, 2) }, PLAN);
    expect(width(few.seconds)).toBeGreaterThan(width(forecast(MEASURED, PLAN).seconds));
  });

  test('counts money by cause, and names what has no price', () => {
    const judging = { calls: 80, cached: 0, promptTokens: 80_000, completionTokens: 8000, usd: null };
    const config = { ...CONFIG, judge: 'groq/large', gpuUsdPerHour: 3.6 };
    const judged = { ...MEASURED, judging };
    const priced = { ...PLAN, config, judgePrice: { usdPerMillionInput: 1, usdPerMillionOutput: 10 } };
    expect(forecast(judged, priced).usd.judge?.expected).toBeCloseTo(0.16);
    expect(forecast(judged, priced).usd.gpu?.expected).toBeCloseTo(0.165);
    const unknown = forecast(judged, { ...PLAN, config });
    expect(unknown.usd).not.toHaveProperty('judge');
    expect(unknown.unpriced).toEqual(['groq/large']);
    const lines = estimateLines(config, { basis: { run: 'old', measured: judged }, forecast: unknown, price: null });
    expect(lines.at(-1)).toMatch(/^cost {6}\$0\.165 \(\$0\.14 to \$0\.19\), without groq\/large \(unknown price;/);
  });
});

const FLAGS = ['agent.ts', '--base-model', 'pocket', '--steps', '4'];

describe('temper train --estimate', () => {
  test('measures the most similar run of the agent and its base model', async () => {
    const project = temporaryProject();
    await writeAgent(project, {
      name: 'guess',
      scenarios: 'Array.from({ length: 20 }, (_, id) => ({ id: `s${id}` }))',
    });
    const store = await writeFixtureRun(project, { run: 'old', agent: 'guess', steps: 3 });
    const told = (number: number): StepSummary => ({ ...summary(number, 3), usage });
    await addToCurve(store, 'old', { branch: 0, step: 3 }, [1, 2, 3].map(told), () => undefined);
    await write(join(project, 'temporal.config.ts'), "export default { train: { 'gpu-usd-per-hour': 9 } }\n");
    const { stdout, stderr, exitCode } = await runCli(project, ['train', ...FLAGS, '--estimate', '--json']);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    const { measured, steps, promptTokens, usd } = JSON.parse(stdout) as Record<string, { expected?: number }>;
    expect({ measured, steps }).toEqual({ measured: { run: 'old', steps: 3 }, steps: 4 });
    expect(promptTokens?.expected).toBeGreaterThanOrEqual(4 * usage.promptTokens);
    expect(usd).toHaveProperty('gpu');
  });

  test.each([
    [['--probe', '--like', 'old'], '--like and --probe exclude each other'],
    [[], 'to measure; pass --probe, which plays four steps'],
    [['--like', 'nobody'], 'no run nobody in the store'],
    [['--max-cost-usd', '5'], '--max-cost-usd 5 has no effect while nothing of the run has a price'],
    [['--from-production', 'demo'], '--estimate and --from-production exclude each other'],
    [['--track', 'nosuch'], '--track and --estimate exclude each other'],
    [['--trace', 'otlp'], '--trace and --estimate exclude each other'],
  ])('refuses %j', async (flags, words) => {
    const project = temporaryProject();
    await writeAgent(project, { name: 'guess', scenarios: "[{ id: 'a' }, { id: 'b' }]" });
    const { exitCode, stderr } = await runCli(project, ['train', ...FLAGS, '--estimate', ...flags]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(words) as string });
  });
});
