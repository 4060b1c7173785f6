/**
 * `npm run pictures`: makes the pictures in docs/pictures anew, from real runs in a temporary project. With `--demo FOLDER`
 * and `--multiplication FOLDER` the reports are those of finished runs in these projects, and the live run is left early.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium, type Browser, type Page } from 'playwright-core';
import { terminalPage } from './ansi.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const TEMPER = [process.execPath, join(ROOT, 'cli/temper.js')];
const AGENT = { demo: 'examples/tic-tac-toe/agent.ts', multiplication: 'examples/multiplication/agent.ts' };
const FLAGS = {
  demo: '--steps 200 --groups-per-step 8 --group-size 16 --learning-rate 4e-3 --learning-rate-schedule linear --replacement-rounds 0',
  multiplication: '--steps 40 --groups-per-step 16 --learning-rate 2e-3 --learning-rate-schedule linear',
};
type Run = keyof typeof AGENT;

/** So many steps make a curve that is worth looking at. */
const LIVE_STEPS = 60;
const LOAD_MS = 30_000;
const TERMINAL = { columns: 110, rows: 32 };

const { values: finished } = parseArgs({
  options: { demo: { type: 'string' }, multiplication: { type: 'string' } },
});
const project = mkdtempSync(join(tmpdir(), 'temper-pictures-'));
const tmux = (...args: string[]) => execFileSync('tmux', ['-L', project.slice(-6), '-f', '/dev/null', ...args]);
const browser = await chromium.launch({
  executablePath: process.env['TEMPER_CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  await takeLivePictures();
  await takeReportPictures(finished.demo ?? project);
  if (finished.multiplication === undefined) await play('multiplication');
  await takeCurve(finished.multiplication ?? project);
} finally {
  await browser.close();
  rmSync(project, { recursive: true, force: true });
}

/** The demo in a terminal, and the same moment in Temporal's UI. */
async function takeLivePictures(): Promise<void> {
  const size = ['-x', String(TERMINAL.columns), '-y', String(TERMINAL.rows)];
  tmux('new-session', '-d', ...size, '-c', project, [...command('demo'), '; sleep 3600'].join(' '));
  try {
    await until(`the demo takes ${LIVE_STEPS} steps`, () => readStep('demo') >= LIVE_STEPS);
    const screen = tmux('capture-pane', '-e', '-p').toString();
    await shootTerminal(browser, screen);
    await shootTemporal(browser);
    if (finished.demo !== undefined) tmux('send-keys', 'C-c');
    await until('the demo ends', () => !isStackUp());
  } finally {
    tmux('kill-server');
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
  const run = `http://127.0.0.1:${readStack().ports.ui}/namespaces/default/workflows/run%2Fdemo`;
  await page.goto(run);
  await page.getByText('rollout • step').first().waitFor({ timeout: LOAD_MS });
  await page.getByText('Event History').first().scrollIntoViewIfNeeded();
  await sleep(1500);
  await page.screenshot({ path: picture('temporal-ui') });
  const own = page.url().replace(/\/history.*$/, '');
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
    const texts = await Promise.all(page.frames().map((frame) => frame.locator('body').innerText()));
    return texts.some((text) => text.includes('groups trained'));
  });
  await sleep(1000);
  await page.screenshot({ path: picture('temporal-ui-details') });
}

async function takeReportPictures(folder: string): Promise<void> {
  const page = await openReport(folder, 'demo');
  await page.screenshot({ path: picture('report') });
  const heading = page.locator('h2', { hasText: 'Episodes' });
  await heading.evaluate((element) => element.scrollIntoView());
  await page.mouse.wheel(0, -20);
  await sleep(500);
  await page.screenshot({ path: picture('report-episodes') });
  await page.close();
}

async function takeCurve(folder: string): Promise<void> {
  const page = await openReport(folder, 'multiplication');
  await page.locator('.chart').first().screenshot({ path: picture('multiplication-curve') });
  await page.close();
}

async function openReport(folder: string, run: Run): Promise<Page> {
  const file = join(project, `${run}.html`);
  execFileSync(TEMPER[0]!, [...TEMPER.slice(1), 'report', run, '--out', file], { cwd: folder });
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
  const state = readJson<{ step: number }>(join('store/runs', run, 'state.json'));
  return state?.step ?? 0;
}

function readStack(): { ports: { ui: number } } {
  return readJson<{ ports: { ui: number } }>('stack.json')!;
}

function isStackUp(): boolean {
  return (readJson<{ children: unknown[] }>('stack.json')?.children ?? []).length > 0;
}

function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(join(project, '.temper', path), 'utf8')) as T;
  } catch {
    return null;
  }
}

async function until(what: string, isTrue: () => boolean | Promise<boolean>, limitMs = 1_200_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await isTrue())) {
    if (Date.now() > end) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
    await sleep(250);
  }
}

function picture(name: string): string {
  return join(ROOT, 'docs/pictures', `${name}.png`);
}
