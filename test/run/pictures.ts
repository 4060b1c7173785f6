/**
 * `npm run pictures`: makes the pictures in docs/pictures anew, from real runs in a temporary project. With
 * `--project FOLDER` in that project, which is kept: its runs go on, and those that are complete are only reported. With
 * `--only review` those of the pages of `temper review` alone, which need no run; with `--only ui` those of `temper ui`, of
 * the runs `demo` and `email-small` in the project. With `--temporal-ui URL` only that of
 * attempts that are workflows: the UI of a server where examples/workflow-agent trains.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium, type Browser, type Frame, type Page } from 'playwright-core';
import { until as untilTrue } from '../until.ts';
import { terminalPage } from './ansi.ts';
import { takeReviewPictures } from './review-pictures.ts';
import { takeUiPictures } from './ui-pictures.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const TEMPER = [process.execPath, join(ROOT, 'cli/temper.js')];
const AGENT = { demo: 'examples/tic-tac-toe/agent.ts', multiplication: 'examples/multiplication/agent.ts' };
const FLAGS = {
  demo: '--steps 60 --passes 2 --loss ppo --groups-per-step 8 --group-size 16 --learning-rate 4e-3 --learning-rate-schedule linear --replacement-rounds 0',
  multiplication: '--steps 40 --groups-per-step 16 --learning-rate 2e-3 --learning-rate-schedule linear',
};
type Run = keyof typeof AGENT;

/** So many steps make a curve that is worth looking at. */
const LIVE_STEPS = 40;
const LOAD_MS = 120_000;
const TERMINAL = { columns: 110, rows: 32 };

const { values } = parseArgs({
  options: { project: { type: 'string' }, only: { type: 'string' }, 'temporal-ui': { type: 'string' } },
});
const project = values.project ?? mkdtempSync(join(tmpdir(), 'temper-pictures-'));
const tmux = (...args: string[]) =>
  execFileSync('tmux', ['-L', `temper-pictures-${process.pid}`, '-f', '/dev/null', ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  }).toString();
const browser = await chromium.launch({
  executablePath: process.env['TEMPER_CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
const { 'temporal-ui': temporalUi } = values;
try {
  if (temporalUi === undefined) await takePictures();
  else await shootAttempt(temporalUi);
} finally {
  await browser.close();
  if (isTerminalOpen()) tmux('kill-server');
  // A failure above is told even where a stack that still ends keeps writing to the folder.
  if (values.project === undefined) rmSync(project, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 });
}

async function takePictures(): Promise<void> {
  if (values.only === 'ui') return takeUiPictures(browser, picture, { temper: TEMPER, project });
  await takeReviewPictures(browser, picture);
  if (values.only === 'review') return;
  await takeLivePictures();
  await takeReportPictures();
  await play('multiplication');
  await takeCurve();
}

/** What happened in an attempt that is complete. */
async function shootAttempt(ui: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1320, height: 1000 } });
  const query = encodeURIComponent('WorkflowType="mailAssistant" AND ExecutionStatus="Completed"');
  await page.goto(`${ui}/namespaces/default/workflows?query=${query}`, { timeout: LOAD_MS });
  const attempt = page.getByRole('link', { name: /^attempt\// }).first();
  await attempt.click({ timeout: LOAD_MS });
  await page.getByText('invokeModelActivity').first().waitFor({ timeout: LOAD_MS });
  await sleep(1500);
  await page.screenshot({ path: picture('temporal-ui-attempt') });
  await page.close();
}

/** The demo in a terminal, and the same moment in Temporal's UI; then the demo's end. */
async function takeLivePictures(): Promise<void> {
  const size = ['-x', String(TERMINAL.columns), '-y', String(TERMINAL.rows)];
  tmux('new-session', '-d', ...size, '-c', project, [...command('demo'), '; sleep 10'].join(' '));
  const begun = Math.max(LIVE_STEPS, readStep('demo') + 2);
  await until(`the demo takes ${begun} steps`, () => {
    if (!isTerminalOpen()) throw new Error('the demo ended before its picture was taken; start it by hand to see why');
    return readStep('demo') >= begun;
  });
  // Paths of this machine are none of a reader's.
  await shootTerminal(browser, tmux('capture-pane', '-e', '-p').replaceAll(`${ROOT}/`, ''));
  await shootTemporal(browser);
  await until('the demo ends', () => !isTerminalOpen());
}

function isTerminalOpen(): boolean {
  try {
    return tmux('has-session') === '';
  } catch {
    return false;
  }
}

async function shootTerminal(of: Browser, screen: string): Promise<void> {
  const page = await of.newPage({ viewport: { width: 1100, height: 500 }, deviceScaleFactor: 1.5 });
  await page.setContent(terminalPage('npm start', screen));
  await page.locator('body').screenshot({ path: picture('terminal') });
  await page.close();
}

async function shootTemporal(of: Browser): Promise<void> {
  const page = await of.newPage({ viewport: { width: 1320, height: 1180 } });
  const key = readFileSync(join(project, '.temper', 'ui.key'), 'utf8');
  const { id } = readJson('store/store.json') as { id: string };
  const run = `http://127.0.0.1:${uiPort()}/namespaces/default/workflows/run%2F${id}%2Fdemo?key=${key}`;
  await page.goto(run);
  await page.getByText('rollout • step').first().waitFor({ timeout: LOAD_MS });
  await page.getByText('Event History').first().scrollIntoViewIfNeeded();
  await sleep(1500);
  await page.screenshot({ path: picture('temporal-ui') });
  const own = page.url().replace(/\/(history|timeline).*$/, '');
  await shootDetails(page, own);
  await page.setViewportSize({ width: 1320, height: 640 });
  await page.goto(`${own}/search-attributes`);
  await page.getByText('TemperReward').first().waitFor({ timeout: LOAD_MS });
  await page.screenshot({ path: picture('temporal-ui-search-attributes') });
  await page.close();
}

/** The UI shows markdown in frames of their own. */
async function shootDetails(page: Page, run: string): Promise<void> {
  await page.setViewportSize({ width: 1320, height: 980 });
  await page.goto(`${run}/user-metadata`);
  await until('the current details are shown', async () => {
    const texts = await Promise.all(page.frames().map(readFrame));
    return texts.some((text) => text.includes('groups trained'));
  });
  await sleep(1000);
  await page.screenshot({ path: picture('temporal-ui-details') });
}

/** A frame may be replaced while it is read. */
async function readFrame(frame: Frame): Promise<string> {
  return frame
    .locator('body')
    .innerText({ timeout: 1000 })
    .catch(() => '');
}

async function takeReportPictures(): Promise<void> {
  const page = await openReport('demo');
  await page.screenshot({ path: picture('report') });
  await page.close();
}

async function takeCurve(): Promise<void> {
  const page = await openReport('multiplication');
  await page
    .locator('.chart')
    .first()
    .screenshot({ path: picture('multiplication-curve') });
  await page.close();
}

async function openReport(run: Run): Promise<Page> {
  const file = join(project, `${run}.html`);
  execFileSync(TEMPER[0]!, [...TEMPER.slice(1), 'report', run, '--out', file], { cwd: project });
  const page = await browser.newPage({ viewport: { width: 1200, height: 860 } });
  await page.goto(pathToFileURL(file).href);
  await page.locator('.chart canvas').first().waitFor();
  return page;
}

async function play(run: Run): Promise<void> {
  const [file, ...args] = command(run);
  const child = spawn(file!, args, { cwd: project, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`the run ${run} must complete, exit code ${code}; see its lines above`);
}

function command(run: Run): string[] {
  return [...TEMPER, 'train', join(ROOT, AGENT[run]), '--run', run, '--base-model', 'pocket', ...FLAGS[run].split(' ')];
}

function readStep(run: Run): number {
  const state = readJson(join('store/runs', run, 'state.json')) as { step: number } | null;
  return state?.step ?? 0;
}

function uiPort(): number {
  return (readJson('stack.json') as { ports: { ui: number } }).ports.ui;
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(join(project, '.temper', path), 'utf8'));
  } catch {
    return null;
  }
}

/** A whole training is waited for. */
function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  return untilTrue(what, isTrue, 1_800_000, 250);
}

function picture(name: string): string {
  return join(ROOT, 'docs/pictures', `${name}.png`);
}
