/** Each page of a run, beside the files of its store: what is shown must be what is stored. */
import type { Locator } from 'playwright-core';
import { describeMetrics, formatNumber } from '../../../core/reports/format.ts';
import { rolloutsKey, type GroupPlace, type StepPlace } from '../../../store/layout.ts';
import { listGroups, readRollouts, readVerdict } from '../../../store/records/groups/group-files.ts';
import { readSteps } from '../../../store/records/runs/run-reader.ts';
import { readTokenTrace } from '../../../store/records/groups/token-trace.ts';
import type { AttemptRecord } from '../../../store/records/groups/trajectories.ts';
import type { TokensView } from '../../../views/api/attempt-views.ts';
import { until } from '../../until.ts';
import type { Trial } from './trial.ts';

const DRAWN_WITHIN_MS = 10_000;

/** A committed step changes no more, whatever is killed meanwhile. */
export async function compareStep(trial: Trial, run: string, step: number): Promise<void> {
  const { store, page } = trial;
  const branch = await branchOf(trial, run, step);
  const place = { run, branch, step };
  const summary = (await readSteps(store, run)).find((each) => each.step === step)!;
  await trial.goTo(`/runs/${run}/steps/${step}?branch=${branch}`);
  const main = page.getByRole('main');
  await main.getByText(summary.adapterSha256.slice(0, 12)).first().waitFor();
  has(`step ${step}`, await main.textContent(), [
    describeMetrics(summary.reward, summary.metrics),
    `${summary.attempts}, ${summary.failedAttempts} failed`,
    String(summary.sampledTokens),
    formatNumber(summary.train['gradNorm']),
  ]);
  const groups = await listGroups(store, place);
  const rows = page.getByRole('grid', { name: 'Groups' }).getByRole('row');
  same('groups', (await rows.count()) - 1, groups.length);
  for (const group of groups) await compareGroup(trial, { ...place, group });
  await compareTokens(trial, place, groups);
  trial.say(`step ${step} of ${run}: page, ${groups.length} groups, attempts and tokens equal the store`);
}

async function branchOf(trial: Trial, run: string, step: number): Promise<number> {
  return (await trial.ask<{ branch: number }>(`runs/${run}/steps/${step}`)).branch;
}

async function compareGroup(trial: Trial, place: GroupPlace): Promise<void> {
  const verdict = await readVerdict(trial.store, place);
  await trial.goTo(`/runs/${place.run}/groups/${idOf(place)}`);
  const cards = trial.page.locator('article.attempt');
  await cards.first().waitFor();
  const shown = await cards.locator('.reward').allTextContents();
  same(`rewards of group ${idOf(place)}`, shown, verdict!.judged.rewards.map(rewardText));
}

const idOf = ({ branch, step, group }: GroupPlace): string => `${branch}.${step}.${group}`;
const rewardText = (reward: number | null): string => (reward === null ? 'no reward' : reward.toFixed(3));

/** Compares every token of the first attempt that was trained, with all its numbers. */
async function compareTokens(trial: Trial, place: StepPlace, groups: readonly number[]): Promise<void> {
  const trace = await readTokenTrace(trial.store, place);
  for (const group of groups) {
    const { rollouts } = (await readRollouts(trial.store, rolloutsKey({ ...place, group })))!;
    const attempt = rollouts.attempts.find((each) => trace?.columnsOf({ group }, each.attempt, 0) != null);
    if (attempt === undefined) continue;
    const order = await compareMessages(trial, { ...place, group }, attempt);
    for (const [turn, call] of order.entries()) {
      const { tokenIds, logprobs } = attempt.calls[call]!;
      const columns = trace!.columnsOf({ group }, attempt.attempt, call)!;
      const expected = tokenIds.map((id, at) => [
        `token ${id} `,
        `log-probability ${formatNumber(logprobs[at])} (probability ${formatNumber(Math.exp(logprobs[at]!))})`,
        `advantage ${formatNumber(columns.advantages[at])}`,
        `entropy ${formatNumber(columns.entropies[at])}`,
        `ratio ${formatNumber(Math.exp(columns.logRatios[at]!), 4)}`,
        columns.mask[at] === 1 ? 'trained' : 'not trained',
      ]);
      await compareStrip(trial, turn, expected);
    }
    return;
  }
}

/** Calls in the order of their turns; a record has them in the order of their hashes. */
async function compareMessages(trial: Trial, place: GroupPlace, attempt: AttemptRecord): Promise<number[]> {
  const id = `${idOf(place)}.${attempt.attempt}`;
  await trial.goTo(`/runs/${place.run}/attempts/${id}`);
  const turns = trial.page.locator('.conversation > .turn');
  await turns.first().waitFor();
  same(`turns of ${id}`, await turns.count(), attempt.calls.length);
  await trial.goTo(`/runs/${place.run}/attempts/${id}?tab=tokens&color=advantage`);
  const { turns: asked } = await trial.ask<TokensView>(`runs/${place.run}/attempts/${id}/tokens`);
  for (const { call, ids, sampledFrom, logprobs } of asked) {
    const { tokenIds, logprobs: recorded } = attempt.calls[call]!;
    same(`tokens of ${id}`, [ids.slice(sampledFrom), logprobs], [tokenIds, recorded]);
  }
  const order = asked.map(({ call }) => call);
  same(
    `calls of ${id}`,
    order.toSorted((a, b) => a - b),
    [...attempt.calls.keys()],
  );
  return order;
}

async function compareStrip(trial: Trial, turn: number, expected: readonly (readonly string[])[]): Promise<void> {
  const strip = trial.page.locator('.token-strip').nth(turn);
  await strip.scrollIntoViewIfNeeded();
  const tokens = strip.locator('.token.sampled');
  await tokens.first().waitFor();
  same(`tokens of turn ${turn + 1}`, await tokens.count(), expected.length);
  for (const [at, facts] of expected.entries()) {
    // A mouse that rests may get another token below it.
    await tokens.nth(at).dispatchEvent('click');
    await hasSoon(`token ${at} of turn ${turn + 1}`, trial.page.locator('.token-facts'), facts);
  }
}

/** Pages that change with the run: compared while it stands still. */
export async function compareRun(trial: Trial, run: string): Promise<void> {
  const { store, page } = trial;
  const [steps, state] = [await readSteps(store, run), await trial.stateOf(run)];
  await trial.goTo('/');
  const row = page.getByRole('row').filter({ hasText: new RegExp(`^${run}`) });
  await row.getByText(state!.state).first().waitFor();
  has(`row of ${run}`, await row.first().textContent(), [formatNumber(steps.at(-1)!.reward)]);
  const curve = await trial.ask<{ steps: readonly object[] }>(`runs/${run}/curve`);
  same(`curve of ${run}`, curve.steps, steps);
  await trial.goTo(`/runs/${run}?tab=steps`);
  const rows = page.getByRole('grid', { name: `Steps of ${run}` }).getByRole('row');
  await rows.filter({ hasText: steps.at(-1)!.adapterSha256.slice(0, 12) }).waitFor();
  const shown = (await rows.allTextContents()).slice(1);
  for (const [at, text] of shown.entries()) {
    const { step, reward, adapterSha256, sampledTokens } = steps.at(-1 - at)!;
    const numbers = [formatNumber(reward), sampledTokens.toLocaleString('en'), adapterSha256.slice(0, 12)];
    has(`row of step ${step}`, text, [String(step), ...numbers]);
  }
  trial.say(`${run}: row, curve of ${steps.length} steps and table equal the store`);
}

export function same(what: string, shown: unknown, stored: unknown): void {
  const [left, right] = [JSON.stringify(shown), JSON.stringify(stored)];
  if (left !== right) throw new Error(`${what}: shown ${left.slice(0, 500)}, stored ${right.slice(0, 500)}`);
}

/** Pages draw a moment after a key or a click. */
async function hasSoon(what: string, shown: Locator, stored: readonly string[]): Promise<void> {
  const isThere = async (): Promise<boolean> => {
    const text = (await shown.textContent()) ?? '';
    return stored.every((each) => text.includes(each));
  };
  await until(what, isThere, DRAWN_WITHIN_MS, 20).catch(() => undefined);
  has(what, await shown.textContent(), stored);
}

export function has(what: string, shown: string | null, stored: readonly string[]): void {
  for (const text of stored)
    if (!(shown ?? '').includes(text))
      throw new Error(`${what}: stored "${text}", shown ${(shown ?? '').slice(0, 800)}`);
}
