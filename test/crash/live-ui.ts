/**
 * A live run in the pages of `temper ui`: actions by their dialogs in a real browser, while workers and the Temporal server
 * are killed underneath; then what the pages show is compared with the store. Run it with
 * `node --import ./workers/typescript.js test/crash/live-ui.ts`; it takes minutes and is no part of CI.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { FileStore } from '../../store/bytes/file-store.ts';
import { rolloutsKey } from '../../store/layout.ts';
import { readRollouts } from '../../store/records/group-files.ts';
import { readState, readSteps } from '../../store/records/run-reader.ts';
import type { TokensView } from '../../views/api/attempt-views.ts';
import type { LanesView } from '../../views/api/run-views.ts';
import { CHROMIUM_ARGUMENTS, findChromium } from '../browser/chromium.ts';
import { AGENT, Project, until } from './project.ts';

const KEY = 'the key of this trial, of at least 24 characters';
const TEMPER = fileURLToPath(new URL('../../cli/temper.js', import.meta.url));
const STEPS = 40;
const WITHIN_MS = 900_000;

const executablePath = await findChromium();
if (executablePath === null) throw new Error('no browser was found; set TEMPER_CHROMIUM');
const project = new Project({ standby: true });
const store = new FileStore(project.path('store'));
const running = project.start(
  'train',
  AGENT,
  ...`--run live --base-model pocket --steps ${STEPS} --groups-per-step 4 --group-size 8`.split(' '),
  ...'--eval-scenarios 16 --learning-rate 4e-3'.split(' '),
);

const stateOf = async (run = 'live') => readState(store, run).catch(() => null);
const reach = (step: number, run = 'live') =>
  until(`${run} reaches step ${step}`, async () => ((await stateOf(run))?.step ?? 0) >= step, WITHIN_MS, 100);
const say = (line: string): void => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);

async function openUi(): Promise<{ url: string; close: () => Promise<void> }> {
  const child = spawn(process.execPath, [TEMPER, 'ui', '--port', '0', '--json'], {
    cwd: project.folder,
    env: { ...process.env, TEMPER_UI_KEY: KEY },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const close = async (): Promise<void> => {
    child.kill('SIGINT');
    await once(child, 'exit');
  };
  let text = '';
  while (!text.includes('\n}')) text += String((await once(child.stdout, 'data'))[0]);
  return { url: (JSON.parse(text) as { url: string }).url, close };
}

await reach(2);
const ui = await openUi();
const ask = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const response = await fetch(`${ui.url}/api/${path}`, { headers, ...init });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json() as Promise<T>;
};
const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_ARGUMENTS] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const failures: string[] = [];
page.on('pageerror', (error) => failures.push(error.message));
await page.goto((await ask<{ url: string }>('links', { method: 'POST', body: '{}' })).url);
const goTo = (path: string) => page.evaluate(`location.hash = ${JSON.stringify(path)}`);

/** Does an action by its dialog, after what it says. */
async function act(button: string, verb: string, fields: Record<string, string> = {}): Promise<void> {
  const menu = page.getByRole('group', { name: /Actions on/ });
  // Folded ones are hidden.
  const found = menu.locator('button').filter({ hasText: new RegExp(`^${button}$`) });
  await found.first().waitFor({ state: 'attached', timeout: 120_000 });
  if (!(await found.first().isVisible())) await menu.getByText('More').click();
  await found.first().click();
  const dialog = page.getByRole('dialog');
  for (const [label, text] of Object.entries(fields)) await dialog.getByLabel(label, { exact: false }).fill(text);
  // Without a form, the dialog asks at once.
  if (verb !== 'Resume the run') await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByRole('button', { name: verb, exact: true }).click({ timeout: 60_000 });
  await dialog.getByRole('button', { name: 'Close' }).last().click({ timeout: 120_000 });
  say(`${button}: done by its dialog`);
}

const shows = async (text: string | RegExp): Promise<void> => {
  await page.getByText(text).first().waitFor({ timeout: WITHIN_MS });
};

function kill(name: string): void {
  process.kill(project.pid(name), 'SIGKILL');
  say(`killed ${name}`);
}

await goTo('/runs/live');
await act('Pause', 'Pause the run', { Reason: 'to look' });
await until('it is paused', async () => (await stateOf())?.state === 'paused', WITHIN_MS, 100);
await shows('paused');
await act('Change settings', 'Change settings', { Settings: 'learningRate=2e-3' });
await act('Resume', 'Resume the run');
await reach(5);
kill('worker-');
await reach(8);
kill('gpu-worker');
await reach(11);
kill('temporal-server');
await reach(14);
await shows(/step 1[4-9]|step 2\d/);
await act('Roll back', 'Roll back', { Step: '10' });
await until('branch 1 is there', async () => (await stateOf())?.branch === 1, WITHIN_MS, 100);
await act('Fork', 'Start the fork', { Step: '5', Name: 'other' });
await reach(7, 'other');
kill('worker-');
await reach(20);
await act('Evaluate', 'Evaluate', { Step: '5' }).catch((error: Error) =>
  say(`Evaluate: ${error.message.slice(0, 300)}`),
);
await reach(STEPS);
const { code } = await running.ended;
say(`train ended with ${code}`);

await compare(page);
await browser.close();
await ui.close();
if (failures.length > 0) throw new Error(`scripts failed in the page: ${failures.join('\n')}`);
console.log('the pages showed a live run, acted on it, and equal the store');

async function compare(of: Page): Promise<void> {
  const steps = await readSteps(store, 'live');
  const curve = await ask<{ steps: { step: number; reward: number; adapterSha256: string }[] }>('runs/live/curve');
  const told = (each: { step: number; reward: number | null; adapterSha256: string }) => [
    each.step,
    each.reward,
    each.adapterSha256,
  ];
  same('curve', curve.steps.map(told), steps.map(told));
  await goTo('/runs/live/steps/12?branch=1');
  const summary = steps.find(({ step }) => step === 12)!;
  await of.getByText(summary.adapterSha256.slice(0, 12)).first().waitFor({ timeout: 60_000 });
  const place = { run: 'live', branch: 1, step: 12, group: 0 };
  const stored = await readRollouts(store, rolloutsKey(place));
  for (const { attempt, calls } of stored!.rollouts.attempts) {
    const { turns } = await ask<TokensView>(`runs/live/attempts/1.12.0.${attempt}/tokens`);
    const shown = turns.map(({ call, ids, sampledFrom, logprobs }) => [call, ids.slice(sampledFrom), logprobs]);
    const recorded = turns.map(({ call }) => [call, calls[call]!.tokenIds, calls[call]!.logprobs]);
    same(`tokens of attempt ${attempt}`, shown, recorded);
    same('calls', turns.length, calls.length);
  }
  const lanes = await ask<LanesView>('runs/live/lanes?from=1&to=40').catch(() => null);
  const kinds = new Set((lanes?.lanes ?? []).flatMap(({ spans }) => spans.map(({ kind }) => kind)));
  say(
    `${steps.length} steps and ${stored!.rollouts.attempts.length} attempts are equal; lanes: ${[...kinds].join(', ')}`,
  );
}

function same(what: string, shown: unknown, stored: unknown): void {
  if (JSON.stringify(shown) !== JSON.stringify(stored))
    throw new Error(
      `${what}: shown ${JSON.stringify(shown).slice(0, 500)}, stored ${JSON.stringify(stored).slice(0, 500)}`,
    );
}
