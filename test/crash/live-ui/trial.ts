/** A project with a live run, `temper ui` on it, and a browser that acts by its dialogs. */
import { chromium, type Locator, type Page } from 'playwright-core';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { readState } from '../../../store/records/runs/run-reader.ts';
import { CHROMIUM_ARGUMENTS, findChromium } from '../../browser/chromium.ts';
import { Project, ticTacToe } from '../../stack.ts';
import { until } from '../../until.ts';

const KEY = 'the key of this trial, of at least 24 characters';
export const WITHIN_MS = 900_000;
/** Starting an engine on a busy machine takes minutes. */
const ACTS_WITHIN_MS = 600_000;

export class Trial {
  readonly project = new Project({ config: { localStack: { standby: true } }, env: { TEMPER_UI_KEY: KEY } });
  readonly store = new FileStore(this.project.path('store'));
  /** Errors of scripts in the page. */
  readonly failures: string[] = [];
  readonly closing: (() => Promise<unknown>)[] = [];
  /** Lines that say what was compared or done. */
  said = 0;
  page!: Page;
  url = '';

  async open(): Promise<void> {
    const executablePath = await findChromium();
    if (executablePath === null) throw new Error('no browser was found; set TEMPER_CHROMIUM');
    this.url = await this.#openUi();
    const browser = await chromium.launch({ executablePath, args: [...CHROMIUM_ARGUMENTS] });
    this.closing.unshift(() => browser.close());
    this.page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    this.page.setDefaultTimeout(120_000);
    this.page.on('pageerror', (error) => this.failures.push(error.message));
    await this.page.goto((await this.ask<{ url: string }>('links', { method: 'POST', body: '{}' })).url);
  }

  async close(): Promise<void> {
    for (const close of this.closing) await close();
    await this.project.close();
  }

  /** The local stack, which lasts longer than a run. */
  hold(): void {
    this.project.start('dev', '--agent', ticTacToe());
  }

  train(run: string, agent: string, words: string) {
    return this.project.start('train', agent, '--run', run, '--base-model', 'pocket', ...words.split(' '));
  }

  async ask<T>(path: string, init: RequestInit = {}): Promise<T> {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const response = await fetch(`${this.url}/api/${path}`, { headers, ...init });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json() as Promise<T>;
  }

  /** Null before it has written one. */
  stateOf(run: string) {
    return readState(this.store, run).catch(() => null);
  }

  reach(run: string, step: number): Promise<void> {
    const isThere = async (): Promise<boolean> => ((await this.stateOf(run))?.step ?? 0) >= step;
    return until(`${run} reaches step ${step}`, isThere, WITHIN_MS, 100);
  }

  becomes(run: string, state: string): Promise<void> {
    return until(`${run} is ${state}`, async () => (await this.stateOf(run))?.state === state, WITHIN_MS, 100);
  }

  async goTo(path: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(path)}`);
    // The page before it goes with the next frame.
    await this.page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    await this.page.locator('h1').first().waitFor();
    await this.page.locator('main .loading').first().waitFor({ state: 'detached' });
  }

  /** An action of the run's menu by its dialog. */
  async act(button: string, fields: Record<string, string> = {}): Promise<string> {
    const menu = this.page.getByRole('group', { name: /Actions on/ });
    const found = menu.locator('button').filter({ hasText: new RegExp(`^${button}$`) });
    await found.first().waitFor({ state: 'attached' });
    // Folded ones are hidden.
    if (!(await found.first().isVisible())) await menu.getByText('More').click();
    await found.first().click();
    return this.confirm(button, fields);
  }

  /** Confirms the open dialog, and returns its last words. */
  async confirm(verb: string, fields: Record<string, string> = {}): Promise<string> {
    const dialog = this.page.getByRole('dialog');
    for (const [label, text] of Object.entries(fields)) await dialog.getByLabel(new RegExp(`^${label}`)).fill(text);
    // Without a form, the dialog asks at once.
    const last = dialog.getByRole('button', { name: verb, exact: true });
    if (verb !== 'Resume') await this.#press('Continue', last);
    await this.#press(verb, dialog.getByText('Close', { exact: true }));
    const says = (await dialog.locator('.says').last().textContent()) ?? '';
    this.say(`${verb}: ${says.split('\n')[0]!.slice(0, 160)}`);
    return says;
  }

  /** Presses until `done` is there. Temporal may be down for a moment: the dialog says so, and keeps the button. */
  async #press(verb: string, done: Locator): Promise<void> {
    const dialog = this.page.getByRole('dialog');
    const problem = dialog.getByRole('alert');
    for (const end = Date.now() + ACTS_WITHIN_MS; ;) {
      await dialog.getByRole('button', { name: verb, exact: true }).click();
      await done.or(problem).first().waitFor({ timeout: ACTS_WITHIN_MS });
      if (await done.isVisible()) return;
      this.say(`${verb}, once more: ${(await problem.textContent())!.slice(0, 200)}`);
      if (Date.now() > end) throw new Error(`${verb} is not done: ${await problem.textContent()}`);
      await this.page.waitForTimeout(3000);
      if (await done.isVisible()) return;
    }
  }

  async closeDialog(): Promise<void> {
    await this.page.getByRole('dialog').getByText('Close', { exact: true }).click();
  }

  say(line: string): void {
    this.said += 1;
    console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);
  }

  async #openUi(): Promise<string> {
    const ui = this.project.start('ui', '--port', '0', '--json');
    await until('the pages are served', () => ui.stdout().includes('\n}') || ui.outcome() !== null);
    return (JSON.parse(ui.stdout()) as { url: string }).url;
  }
}
