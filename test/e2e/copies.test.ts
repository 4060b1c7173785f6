/** A real run on the pocket model, trained once: verified, copied, continued elsewhere, pruned. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Project, until } from '../crash/project.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const STEPS = 4;
const FLAGS =
  '--base-model pocket --groups-per-step 2 --group-size 8 --eval-scenarios 8 --eval-every 1 --learning-rate 4e-3'.split(
    ' ',
  );

const home = new Project();

const train = (project: Project, ...flags: string[]) =>
  project.run('train', AGENT, '--run', 'demo', '--steps', String(STEPS), ...FLAGS, ...flags);

beforeAll(async () => {
  const { code, output } = await train(home);
  expect(code, output).toBe(0);
});

afterAll(() => home.close());

test('a real run is whole, and its last step made again has the same bytes', async () => {
  const { code, output } = await home.run('verify', 'demo');
  expect(output).toContain(`re-computed demo@${STEPS}: adapter and optimizer state have the same bytes\n`);
  expect(output).toContain('demo is whole');
  expect(code).toBe(0);
});

test('its first checkpoint and any step can be made again', async () => {
  for (const step of [0, 2]) {
    const { code, output } = await home.run('verify', 'demo', '--step', String(step), '--json');
    expect(code, output).toBe(0);
    expect(JSON.parse(output)).toMatchObject({
      ok: true,
      recomputed: { policy: `demo@${step}`, verdict: 'same bytes' },
    });
  }
});
