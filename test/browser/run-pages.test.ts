/** Pages of runs: what they show is what the store has, and they follow it. */
import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { writeUiStore } from '../../bench/ui/write-store.ts';
import { describeAwaited } from '../../core/rules/external-rewards.ts';
import { formatNumber, headline } from '../../core/reports/format.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { changesKey, stateKey } from '../../store/layout.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import type { AttemptsView } from '../../views/api/attempt-views.ts';
import type { CompareView, CurveView, RunRow, RunView } from '../../views/api/run-views.ts';
import { describePages, goTo } from './open-pages.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const STEPS = 300;
const folder = temporaryFolder();
const made = { folder, groups: 1, attempts: 4, turns: 2, blobBytes: 100, words: 4 };
const store = await writeUiStore({ ...made, run: 'demo', steps: STEPS, evalEvery: 50 });
await writeUiStore({ ...made, run: 'constant', steps: 30, bug: 'constant' });
await writeUiStore({ ...made, run: 'live', steps: 10, state: 'running' });
const change = { setting: 'temperature', from: 1, to: 0.8, branch: 0, step: 10, reason: null };
await store.publish(changesKey('constant', 1), encodeJson({ schema: 1, changes: [change] }));

await describePages('pages of runs', folder, ({ open, ask }) => {
  test('the list shows every run with its state, reward and progress; the filter is in the address', async () => {
    const page = await open('/');
    const rows = await ask<RunRow[]>('runs');
    expect(rows).toHaveLength(3);
    for (const { run, state, reward, step, steps } of rows) {
      const text = await page
        .getByRole('row')
        .filter({ has: page.getByRole('link', { name: run }) })
        .textContent();
      expect(text).toContain(state);
      expect(text).toContain(formatNumber(reward));
      expect(text).toContain(`${step} / ${steps}`);
    }
    await page.getByRole('searchbox', { name: 'Filter runs' }).fill('running');
    await expect.poll(() => cellsOf(page.getByRole('grid'), 0)).toEqual([expect.stringContaining('live')]);
    await page.waitForURL(/\?filter=running$/);
  });

  test('at 1280 pixels nothing is clipped in the list of runs, nor the ids of groups; at 390 the result is in sight', async () => {
    const page = await open('/');
    const runs = page.getByRole('grid', { name: 'Runs' });
    await runs.getByRole('row').nth(3).waitFor();
    expect(await clipped(runs)).toEqual([]);
    await goTo(page, `/runs/demo/steps/${STEPS}`);
    const groups = page.getByRole('grid', { name: 'Groups' });
    await groups.getByRole('row').nth(1).waitFor();
    expect(await clipped(groups)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 700 });
    await goTo(page, '/');
    const result = runs.getByRole('row', { name: /demo/ }).getByRole('gridcell').nth(1);
    const [{ heldOut }] = (await ask<RunRow[]>('runs')).filter(({ run }) => run === 'demo') as [RunRow];
    expect(await result.textContent()).toContain(formatNumber(heldOut!.value));
    expect(await rightEnd(result)).toBeLessThan(390);
  });

  test('two chosen runs are compared: a curve for each, a table of the numbers, the settings that differ', async () => {
    const page = await open('/');
    const compare = page.getByRole('button', { name: 'Compare' });
    await page.getByRole('checkbox', { name: 'Compare demo' }).check();
    expect(await compare.isDisabled()).toBe(true);
    await page.getByRole('checkbox', { name: 'Compare constant' }).check();
    await compare.click();
    await page.waitForURL(/#\/compare\?runs=demo%2Cconstant$/);
    const view = await ask<CompareView>('compare?runs=demo,constant');
    await page.getByRole('img', { name: /^reward: / }).waitFor();
    const settings = page.getByRole('region', { name: 'Settings that differ' });
    for (const { setting, values } of view.settings)
      expect(await settings.textContent()).toContain(setting + values.join(''));
    await page.getByRole('button', { name: 'entropy' }).click();
    await page.waitForURL(/metrics=reward%2Centropy$/);
    await expect.poll(() => page.locator('.chart').count()).toBe(2);
  });

  test('runs are chosen by Space on their rows, and compared without a mouse', async () => {
    const page = await open('/');
    const rows = page.getByRole('grid', { name: 'Runs' }).locator('[role=row][data-index]');
    await rows.first().waitFor();
    for (const index of [0, 1]) {
      await page.keyboard.press('j');
      await expect.poll(() => page.evaluate('document.activeElement.dataset.index')).toBe(String(index));
      await page.keyboard.press('Space');
      await expect.poll(() => rows.nth(index).getAttribute('aria-selected')).toBe('true');
    }
    // Back over the heads of the columns.
    const compare = page.getByRole('button', { name: 'Compare 2' });
    while ((await page.evaluate('document.activeElement.textContent')) !== 'Compare 2')
      await page.keyboard.press('Shift+Tab');
    expect(await compare.count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.waitForURL(/compare\?runs=/);
  });

  test('advisories come first, each with its remedy and attempts to look at', async () => {
    const page = await open('/runs/constant');
    const { advisories } = await ask<RunView>('runs/constant');
    const shown = page.getByRole('region', { name: 'Advisories' }).getByRole('article');
    await shown.first().waitFor();
    expect(advisories.length).toBeGreaterThan(0);
    expect(await shown.count()).toBe(advisories.length);
    expect(await shown.first().textContent()).toContain(advisories[0]!.remedy);
    await shown.first().getByRole('link').first().click();
    await page.waitForURL(/\/attempts/);
  });

  test('the held-out result is on top; at most six charts, and all of them by a button that the address keeps', async () => {
    const page = await open('/runs/demo');
    const { state } = await ask<RunView>('runs/demo');
    const result = page.getByRole('region', { name: 'Held-out result' });
    await expect.poll(() => result.textContent()).toContain(`after step ${STEPS}`);
    expect(await result.textContent()).toContain('95 % intervals');
    for (const evaluation of [state!.evals[0]!, state!.evals.at(-1)!])
      expect(await result.textContent()).toContain(formatNumber(headline(evaluation).value));
    const charts = page.locator('.chart');
    await charts.first().waitFor();
    expect(await charts.count()).toBeLessThanOrEqual(6);
    await page.getByRole('button', { name: /^All \d+ charts$/ }).click();
    await page.waitForURL(/charts=all$/);
    await expect.poll(() => charts.count()).toBeGreaterThan(6);
  });

  test('what was changed during a run stands beside its charts', async () => {
    const page = await open('/runs/constant');
    const markers = page.locator('.markers');
    await expect.poll(() => markers.textContent()).toBe('Dashed lines: temperature 0.8 from step 10 on');
  });

  test('a chart as a table has the numbers of the curve, and its steps open', async () => {
    const page = await open('/runs/demo');
    const { steps } = await ask<CurveView>('runs/demo/curve');
    await page.getByRole('button', { name: 'Reward as a table' }).click();
    const table = page.getByRole('grid', { name: 'Reward' });
    await table.getByRole('row').nth(2).waitFor();
    expect((await cellsOf(table, 1)).slice(0, 5)).toEqual(
      steps
        .toReversed()
        .slice(0, 5)
        .map(({ reward }) => formatNumber(reward)),
    );
    await table.getByRole('button', { name: String(STEPS - 1), exact: true }).click();
    await page.waitForURL(new RegExp(`/steps/${STEPS - 1}$`));
  });

  test('a chart zooms by dragging, resets, and opens the step of a click', async () => {
    const page = await open('/runs/demo');
    const plot = page.locator('.plot .u-over').first();
    await plot.waitFor();
    await plot.scrollIntoViewIfNeeded();
    const box = (await plot.boundingBox())!;
    const at = (share: number) => [box.x + box.width * share, box.y + box.height / 2] as const;
    await page.mouse.move(...at(0.5));
    await page.mouse.down();
    await page.mouse.move(...at(0.75), { steps: 5 });
    await page.mouse.up();
    const link = page.locator('.range-links').getByRole('link');
    const [, from, to] = /steps (\d+) to (\d+)/.exec((await link.textContent())!)!;
    expect(Number(from)).toBeCloseTo(STEPS * 0.5, -1);
    expect(Number(to)).toBeCloseTo(STEPS * 0.75, -1);
    expect(await link.getAttribute('href')).toBe(`#/runs/demo/attempts?fromStep=${from}&toStep=${to}`);
    await page.getByRole('button', { name: 'Reset zoom' }).first().click();
    await link.waitFor({ state: 'detached' });
    await page.mouse.click(...at(0.5));
    await page.waitForURL(/\/steps\/1[45]\d$/);
  });

  test('keys walk along a chart and open its step', async () => {
    const page = await open('/runs/demo');
    const plot = page.getByRole('img', { name: /^Reward: / });
    await page.locator('.plot .u-over').first().waitFor();
    await plot.focus();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => page.locator('.legend-step').first().textContent()).toBe(`at step ${STEPS - 1}`);
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`/steps/${STEPS - 1}$`));
  });

  test('the table of steps has rows wherever it is scrolled to, and End goes to the last', async () => {
    const page = await open('/runs/demo?tab=steps');
    const table = page.getByRole('grid', { name: 'Steps of demo' });
    await table.getByRole('row').nth(1).waitFor();
    expect(await table.getAttribute('aria-rowcount')).toBe(String(STEPS + 1));
    // A row is 30 pixels high.
    expect(await largestGap(table)).toBeLessThan(4);
    await page.keyboard.press('j');
    // A row that was scrolled away has to be drawn before it can have the focus.
    await expect.poll(() => page.evaluate('document.activeElement.role')).toBe('row');
    await page.keyboard.press('End');
    await expect.poll(() => page.locator(':focus').innerText()).toMatch(/^1\D|^1\d\./);
    await table.getByRole('button', { name: 'reward', exact: true }).click();
    await table.getByRole('button', { name: 'reward', exact: true }).click();
    const { steps } = await ask<CurveView>('runs/demo/curve');
    const lowest = Math.min(...steps.flatMap(({ reward }) => reward ?? []));
    await table.evaluate((element) => element.scrollTo(0, 0));
    await expect.poll(async () => (await cellsOf(table, 1))[0]).toBe(formatNumber(lowest));
  });

  test('timeline, lineage, configuration and notes are tabs that the address keeps', async () => {
    const page = await open('/runs/demo');
    await page.getByRole('tab', { name: 'Curves' }).focus();
    for (const name of ['Steps', 'Timeline', 'Lineage', 'Configuration', 'Notes']) {
      await page.keyboard.press('ArrowRight');
      await page.waitForURL(new RegExp(`tab=${name.toLowerCase()}$`));
      await expect.poll(() => page.getByRole('tab', { name }).getAttribute('aria-selected')).toBe('true');
    }
    await goTo(page, '/runs/demo?tab=timeline');
    await page.getByRole('img', { name: /^Timeline over / }).waitFor();
    await page.getByRole('button', { name: /^Show all/ }).click();
    await page.getByRole('grid', { name: 'All spans' }).getByRole('row').nth(3).waitFor();
    await goTo(page, '/runs/demo?tab=lineage');
    await page.getByRole('link', { name: 'branch 0' }).waitFor();
    await goTo(page, '/runs/demo?tab=configuration');
    const config = page.getByRole('region', { name: 'Configuration' });
    await expect.poll(() => config.textContent()).toContain('baseModelpocket');
  });

  test('a search is in the address, finds what the API finds, and loads more as it is scrolled', async () => {
    const page = await open('/runs/demo/attempts?fromStep=20&toStep=22&sort=reward');
    const found = await ask<AttemptsView>('runs/demo/attempts?fromStep=20&toStep=22&sort=reward');
    const table = page.getByRole('grid', { name: 'Attempts of demo' });
    await expect.poll(() => cellsOf(table, 1)).toEqual(found.rows.map(({ reward }) => formatNumber(reward)));
    expect(await table.getByRole('link').first().getAttribute('href')).toBe(
      `#/runs/demo/attempts/${found.rows[0]!.id}`,
    );
    await page.getByRole('searchbox', { name: 'Text' }).fill('question');
    await page.waitForURL(/text=question/);
    await expect.poll(() => table.locator('mark').first().textContent()).toMatch(/^question$/i);
    // Rows with an excerpt are higher than those before.
    const second = table.locator('[role=row][data-index="1"]');
    await expect.poll(() => second.evaluate((row) => row.style.transform)).toBe('translateY(50px)');
    await page.getByRole('button', { name: /^Clear/ }).click();
    await expect.poll(() => table.getAttribute('aria-rowcount')).toBe(String((await total()) + 1));
    await table.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await expect.poll(async () => (await cellsOf(table, 0)).at(-1)).toMatch(/attempt \d+$/);
  });

  test('the list of attempts has their answers; in a narrow window their rewards are in sight', async () => {
    const path = 'runs/demo/attempts?kind=eval';
    const page = await open(`/${path}`, { viewport: { width: 390, height: 700 } });
    const { rows } = await ask<AttemptsView>(path);
    const table = page.getByRole('grid', { name: 'Attempts of demo' });
    const answers = rows.slice(0, 5).map(({ answer }) => answer);
    await expect.poll(async () => (await cellsOf(table, 2)).slice(0, 5)).toEqual(answers);
    expect(answers[0]).toMatch(/^The answer is (right|wrong): /);
    const reward = table.getByRole('row').nth(1).getByRole('gridcell').nth(1);
    expect(await rightEnd(reward)).toBeLessThan(390);
  });

  test('a wrong filter is said in words', async () => {
    const page = await open('/runs/demo/attempts?metric=what');
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('metric');
  });

  test('a run that waits for rewards says for how many groups, and which command takes them', async () => {
    const { state } = await ask<RunView>('runs/live');
    const counts = { step: 11, missing: 5, attempts: 8, waiting: 2, groups: 2, complete: 0, needed: 2 };
    const awaited = { ...counts, since: '2026-11-01T10:00:00Z', nextDeadline: null };
    const line = (await open('/runs/live')).locator('.run-line');
    await store.replace(stateKey('live'), encodeJson({ ...state!, awaited, waitingFor: describeAwaited(awaited) }));
    await expect.poll(() => line.textContent()).toMatch(/missing in 2 of 2 open groups .*; give them in temper review/);
    await store.replace(stateKey('live'), encodeJson(state!));
    await expect.poll(() => line.textContent()).not.toContain('temper review');
  });

  test('a new step extends what is shown, without moving focus or scroll', async () => {
    const page = await open('/runs/live?tab=steps');
    const table = page.getByRole('grid', { name: 'Steps of live' });
    await table.getByRole('row').nth(3).focus();
    await table.evaluate((element) => element.scrollTo(40, 0));
    const { steps } = await ask<CurveView>('runs/live/curve');
    const { state } = await ask<RunView>('runs/live');
    const last = steps.at(-1)!;
    await addToCurve(store, 'live', { branch: 0, step: 11 }, [{ ...last, step: 11, reward: 0.625 }], () => undefined);
    await store.replace(stateKey('live'), encodeJson({ ...state!, step: 11, steps: 20, reward: 0.625 }));
    await expect.poll(async () => (await cellsOf(table, 0))[0]).toBe('11');
    expect((await cellsOf(table, 1))[0]).toBe(formatNumber(0.625));
    await expect.poll(() => page.locator('.run-line').textContent()).toContain('step 11 of 20');
    expect(await table.evaluate((element) => element.scrollLeft)).toBe(40);
    expect(await page.locator(':focus').getAttribute('role')).toBe('row');
  });

  const total = async (): Promise<number> => (await ask<AttemptsView>('runs/demo/attempts?sort=reward')).total;
});

/** Text of a column's cells, in the rows that are in the document. */
function cellsOf(table: Locator, column: number): Promise<string[]> {
  return table.evaluate(
    (element, at) =>
      [...element.querySelectorAll('.table-body [role=row]')]
        .toSorted((a, b) => Number(a.getAttribute('aria-rowindex')) - Number(b.getAttribute('aria-rowindex')))
        .map((row) => row.children[at]!.textContent),
    column,
  );
}

/** Texts of cells that are wider than their column. */
function clipped(table: Locator): Promise<string[]> {
  return table.evaluate((element) =>
    [...element.querySelectorAll('.cell, .cell .two-lines > *')]
      .filter(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth)
      .map(({ textContent }) => textContent),
  );
}

async function rightEnd(cell: Locator): Promise<number> {
  const { x, width } = (await cell.boundingBox())!;
  return x + width;
}

/** Pixels in sight without a row, at the worst of many places, in the frame after each jump. */
function largestGap(table: Locator): Promise<number> {
  return table.evaluate(async (element) => {
    let worst = 0;
    for (let place = 0; place < 40; place++) {
      element.scrollTo(0, ((place * 7919) % 40) * (element.scrollHeight / 40));
      await new Promise((resolve) => element.ownerDocument.defaultView?.requestAnimationFrame(resolve));
      const view = element.getBoundingClientRect();
      const rows = [...element.querySelectorAll('.table-body [role=row]')].map((row) => row.getBoundingClientRect());
      const top = Math.min(...rows.map((row) => row.top)) - (view.top + 32);
      const bottom = view.bottom - 2 - Math.max(...rows.map((row) => row.bottom));
      worst = Math.max(worst, Math.ceil(top), Math.ceil(bottom));
    }
    return worst;
  });
}
