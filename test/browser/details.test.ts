/** Pages of a step, a group, an attempt and its tokens: what they show is what the API answers. */
import { expect, test } from 'vitest';
import { writeUiStore } from '../../bench/ui/write-store.ts';
import { formatNumber } from '../../core/reports/format.ts';
import type { AttemptView, GroupView, StepView, TokensView } from '../../views/api/attempt-views.ts';
import type { CheckpointRow } from '../../views/api/run-views.ts';
import { writeFixtureRun } from '../cli/fixture-store.ts';
import { describePages, goTo, isLoaded, testLooks } from './open-pages.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const HOSTILE = [
  '</script><script>globalThis.owned = 1</script><img src=x onerror="globalThis.owned = 2">',
  '\u202Eright to left\u202C',
  `z${'\u0351\u0324'.repeat(60)}algo`,
  'x'.repeat(1_000_000),
].join('\n');

const folder = temporaryFolder();
await writeUiStore({ folder, run: 'demo', steps: 4, groups: 2, attempts: 4, turns: 3, blobBytes: 100 });
await writeFixtureRun(folder, { run: 'hostile', steps: 1, answer: HOSTILE, explanation: HOSTILE, storeUri: folder });

const loss = { heldOutLossBefore: 2.5, heldOutLoss: 0.75, heldOutExamples: 6 };
const state = { evals: [], evalBefore: null, evalAfter: null };
await writeFixtureRun(folder, { run: 'chats', steps: 2, train: loss, state, storeUri: folder });

const PATHS = [
  '/runs/demo/steps/3',
  '/runs/demo/groups/0.3.1',
  '/runs/demo/groups/0.3.1?tab=rewards',
  '/runs/demo/groups/0.3.1?tab=diff',
  '/runs/demo/groups/0.3.1?tab=judge',
  '/runs/demo/groups/eval.0.4',
  '/runs/demo/groups/eval.0.4?tab=before',
  '/runs/demo/attempts/0.3.1.2',
  '/runs/demo/attempts/0.3.1.2?tab=tokens&color=advantage',
  '/runs/demo/attempts/0.3.1.2?tab=times',
  '/runs/demo/attempts/0.3.1.2?tab=raw',
  '/runs/demo/checkpoints?at=demo@3&compare=demo@1,demo@4',
  '/runs/demo/chat?left=demo@4&right=base:demo',
];

await describePages('pages of a step and below', folder, (pages) => {
  const { open, openApart, ask } = pages;

  test('a step lists its groups, and a group leads back; [ and ] go to its neighbours', async () => {
    const step = await ask<StepView>('runs/demo/steps/3');
    const page = await open('/runs/demo/steps/3');
    const rows = page.getByRole('grid', { name: 'Groups' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(step.groups.length + 1);
    const [first] = step.groups;
    expect(await rows.nth(1).textContent()).toContain(first!.scenario);
    expect(await rows.nth(1).textContent()).toContain(first!.mean!.toFixed(3));
    await rows.nth(1).click();
    await page.waitForURL(/groups\/0\.3\.0$/);
    await page.getByRole('heading', { level: 1, name: 'Group 0.3.0' }).waitFor();
    await page.keyboard.press(']');
    await page.waitForURL(/groups\/0\.3\.1$/);
    await page.getByRole('main').getByRole('link', { name: 'step 3' }).click();
    await page.getByRole('heading', { level: 1, name: 'Step 3' }).waitFor();
    await page.keyboard.press('[');
    await page.waitForURL(/steps\/2/);
  });

  test('a run that only trains chats has its held-out loss on top', async () => {
    const page = await open('/runs/chats');
    const result = page.getByRole('region', { name: 'Held-out result' });
    await result.waitFor();
    expect(await result.textContent()).toBe(
      'Loss on held-out examples2.500→0.750nats per token of 6 examples, before and after training',
    );
  });

  test('the first and the last attempt, group and step say that they are, with buttons that are off', async () => {
    const ends = async (path: string) => {
      const page = await open(path);
      const buttons = page.getByRole('navigation', { name: /^Other / });
      await buttons.waitFor();
      const texts = (role: 'link' | 'button') => buttons.getByRole(role).allTextContents();
      return { links: await texts('link'), off: await texts('button') };
    };
    expect(await ends('/runs/demo/attempts/0.3.1.0')).toEqual({ links: ['next →'], off: ['← previous'] });
    expect(await ends('/runs/demo/attempts/0.3.1.2')).toEqual({ links: ['← previous', 'next →'], off: [] });
    expect(await ends('/runs/demo/attempts/0.3.1.3')).toEqual({ links: ['← previous'], off: ['next →'] });
    expect(await ends('/runs/demo/groups/0.3.1')).toEqual({ links: ['← previous'], off: ['next →'] });
    expect(await ends('/runs/demo/steps/4')).toEqual({ links: ['← previous'], off: ['next →'] });
  });

  test('a new page begins at its top, and Back shows the one before', async () => {
    const page = await open('/runs/demo/groups/0.3.1', { viewport: { width: 600, height: 300 } });
    await page.locator('article.attempt').first().waitFor();
    const top = () => page.evaluate<number>('Math.round(document.scrollingElement.scrollTop)');
    await page.evaluate(`document.scrollingElement.scrollTop = 150; location.hash = '/runs/demo/attempts/0.3.1.2'`);
    await page.getByRole('heading', { level: 1, name: 'Attempt 0.3.1.2' }).waitFor();
    await expect.poll(top).toBe(0);
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Group 0.3.1' }).waitFor();
  });

  test('a group shows every attempt with its reward; chosen columns are in the address', async () => {
    const group = await ask<GroupView>('runs/demo/groups/0.3.1');
    const page = await open('/runs/demo/groups/0.3.1');
    const cards = page.locator('article.attempt');
    await expect.poll(() => cards.count()).toBe(group.attempts.length);
    for (const [index, { row }] of group.attempts.entries())
      expect(await cards.nth(index).locator('.reward').textContent()).toBe(rewardText(row.reward));
    await page.getByRole('button', { name: /^attempt 2/ }).click();
    await expect.poll(() => cards.count()).toBe(1);
    expect(page.url()).toContain('show=0.3.1.2');
    await page.getByRole('button', { name: 'show all' }).click();
    await expect.poll(() => cards.count()).toBe(group.attempts.length);
  });

  test('what all prompts of a group share is shown once, above its attempts', async () => {
    const { attempts } = await ask<GroupView>('runs/demo/groups/0.3.1');
    const { messages, answer } = attempts[0]!.turns[0]!;
    const page = await open('/runs/demo/groups/0.3.1');
    const shared = page.locator('.shared-prompt');
    await shared.waitFor();
    const cards = (await page.locator('.attempts').textContent())!;
    expect(cards).toContain(answer.text);
    for (const { text } of messages) {
      expect(await shared.textContent()).toContain(text);
      expect(cards).not.toContain(text);
    }
  });

  test('two attempts are compared word by word, the best beside the worst', async () => {
    const { attempts } = await ask<GroupView>('runs/demo/groups/0.3.1');
    const page = await open('/runs/demo/groups/0.3.1?tab=diff');
    const heads = page.locator('.diff-table thead th');
    await heads.first().waitFor();
    const ranked = attempts.toSorted((a, b) => (b.row.reward ?? -Infinity) - (a.row.reward ?? -Infinity));
    expect(await heads.allTextContents()).toEqual([ranked[0]!.title, ranked.at(-1)!.title]);
    expect(await page.locator('.diff-table ins').count()).toBeGreaterThan(0);
    const left = await page.locator('.diff-table tbody tr td:first-child pre').allTextContents();
    expect(left[0]).toBe(ranked[0]!.turns[0]!.messages[0]!.text);
  });

  test('an evaluation is sorted by reward, and a scenario is compared with itself before training', async () => {
    const { attempts } = await ask<GroupView>('runs/demo/groups/eval.0.4');
    const page = await open('/runs/demo/groups/eval.0.4');
    const cards = page.locator('article.attempt');
    await expect.poll(() => cards.count()).toBe(attempts.length);
    expect(await page.getByRole('main').textContent()).toContain('sorted by reward, lowest first');
    expect(await cards.first().locator('.reward').textContent()).toBe(rewardText(attempts[0]!.row.reward));
    await cards
      .nth(1)
      .getByRole('link', { name: /^before training/ })
      .click();
    await page.waitForURL(/tab=before&scenario=eval\.0\.4\.\d+$/);
    const heads = page.locator('.diff-table thead th');
    await expect.poll(() => heads.allTextContents()).toEqual(['before training', 'after step 4']);
    expect(await page.locator('.choice select').inputValue()).toBe(attempts[1]!.row.id);
  });

  test('rewards and metrics are sorted by a click on a head', async () => {
    const { attempts } = await ask<GroupView>('runs/demo/groups/0.3.1');
    const page = await open('/runs/demo/groups/0.3.1?tab=rewards');
    await page.getByRole('button', { name: 'tokens' }).click();
    const shown = await page.locator('.plain-table tbody th').allTextContents();
    const expected = attempts.toSorted((a, b) => b.row.sampledTokens - a.row.sampledTokens);
    expect(shown).toEqual(expected.map(({ title }) => title));
  });

  test('an attempt shows each turn, message and tool call of its record', async () => {
    const attempt = await ask<AttemptView>('runs/demo/attempts/0.3.1.2');
    const page = await open('/runs/demo/attempts/0.3.1.2');
    const turns = page.locator('.conversation > .turn');
    await expect.poll(() => turns.count()).toBe(attempt.turns.length);
    for (const [index, turn] of attempt.turns.entries()) {
      const text = await turns.nth(index).textContent();
      for (const message of [...turn.messages, turn.answer]) expect(text).toContain(message.text);
      for (const { name } of turn.answer.toolCalls) expect(text).toContain(name);
      expect(text).toContain(`${turn.promptTokens} prompt tokens`);
    }
  });

  test('tokens are those of the record: ids, log-probabilities, in every turn', async () => {
    const tokens = await ask<TokensView>('runs/demo/attempts/0.3.1.2/tokens');
    const raw = await ask<{ calls: { promptTokenIds: number[]; tokenIds: number[]; logprobs: number[] }[] }>(
      'runs/demo/attempts/0.3.1.2/raw',
    );
    const page = await open('/runs/demo/attempts/0.3.1.2?tab=tokens');
    const strips = page.locator('.token-strip');
    await expect.poll(() => strips.count()).toBe(tokens.turns.length);
    for (const [at, turn] of tokens.turns.entries()) {
      const { promptTokenIds, tokenIds, logprobs } = raw.calls[turn.call]!;
      expect([...promptTokenIds.slice(turn.shared), ...tokenIds]).toEqual(turn.ids);
      const strip = strips.nth(at);
      await strip.scrollIntoViewIfNeeded();
      await expect.poll(() => strip.locator('.token').count()).toBe(turn.ids.length);
      await strip.locator('.token.sampled').first().hover();
      await expect
        .poll(() => page.locator('.token-facts').textContent())
        .toMatch(new RegExp(`^token ${tokenIds[0]} .*log-probability ${logprobs[0]!.toFixed(3)}`));
      if (!tokens.hasText) expect(await strip.locator('.token').allTextContents()).toEqual(turn.ids.map(String));
    }
  });

  test('arrow keys move along the tokens, over the end of a turn, and say what is there', async () => {
    const { turns } = await ask<TokensView>('runs/demo/attempts/0.3.1.2/tokens');
    const page = await open('/runs/demo/attempts/0.3.1.2?tab=tokens');
    const facts = () => page.locator('.token-facts').textContent();
    await page.locator('.tokens').first().focus();
    await expect.poll(facts).toContain(`token ${turns[0]!.ids[0]} `);
    await page.keyboard.press('ArrowRight');
    await expect.poll(facts).toContain(`token ${turns[0]!.ids[1]} `);
    await page.keyboard.press('End');
    await expect.poll(facts).toContain(`token ${turns[0]!.ids.at(-1)} `);
    await page.keyboard.press('ArrowRight');
    await expect.poll(facts).toContain(`token ${turns[1]!.ids[0]} `);
    const current = page.locator('[role=option][aria-selected=true]');
    expect(await current.count()).toBe(1);
    expect(await page.locator(':focus').getAttribute('aria-activedescendant')).toBe(await current.getAttribute('id'));
  });

  test('overlays are chosen by a button, and kept in the address', async () => {
    const page = await open('/runs/demo/attempts/0.3.1.2?tab=tokens');
    await page.getByRole('button', { name: 'Advantage' }).click();
    await page.waitForURL(/color=advantage/);
    const { row } = await ask<AttemptView>('runs/demo/attempts/0.3.1.2');
    const shade = row.advantage! > 0 ? 'up' : 'down';
    if (row.advantage !== 0)
      await expect.poll(() => page.locator(`.tokens .token.sampled.${shade}`).count()).toBeGreaterThan(0);
    await page.keyboard.press('m');
    await page.locator('.conversation .message').first().waitFor();
  });

  test('a call is copied as curl, with variables for address and key', async () => {
    const page = await openApart('/runs/demo/attempts/0.3.1.2', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByRole('button', { name: 'Copy as curl' }).first().click();
    await page.getByText('Copied', { exact: true }).waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    const raw = await ask<{ calls: { request: object }[] }>('runs/demo/attempts/0.3.1.2/raw');
    expect(copied).toContain('"$OPENAI_BASE_URL/chat/completions"');
    expect(copied).toContain(JSON.stringify(raw.calls[0]!.request).slice(1, 60).replaceAll("'", `'\\''`));
  });

  test('checkpoints are compared, and one shows its commands', async () => {
    const rows = await ask<CheckpointRow[]>('runs/demo/checkpoints');
    const page = await open('/runs/demo/checkpoints');
    await page.getByRole('checkbox', { name: 'Compare demo@1', exact: true }).click();
    await page.getByRole('checkbox', { name: 'Compare demo@4', exact: true }).click();
    const comparison = page.getByRole('region', { name: 'Comparison' });
    const reward = (name: string): string => formatNumber(rows.find((row) => row.name === name)!.reward);
    await expect.poll(() => comparison.textContent()).toContain(reward('demo@1'));
    expect(await comparison.textContent()).toContain(reward('demo@4'));
    await page.getByRole('row', { name: /demo@3/ }).click();
    await expect.poll(() => page.locator('.commands').textContent()).toContain('temper export demo@3 --to');
    expect(await page.getByRole('button', { name: 'Roll back to it' }).getAttribute('title')).toContain('No Temporal');
  });

  testLooks(pages, PATHS);

  test('hostile text stays text, in its place, in every view', async () => {
    const page = await open('/', { viewport: { width: 1000, height: 700 } });
    const attempt = '/runs/hostile/attempts/0.1.0.0';
    const group = '/runs/hostile/groups/0.1.0';
    for (const path of [attempt, `${attempt}?tab=raw`, `${attempt}?tab=tokens`, group, `${group}?tab=diff`]) {
      await goTo(page, path);
      await isLoaded(page);
      expect([path, await page.evaluate('"owned" in globalThis')]).toEqual([path, false]);
      expect([path, await page.locator('main img, main script').count()]).toEqual([path, 0]);
      expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 1000]);
    }
    await goTo(page, attempt);
    const text = page.locator('.conversation .text', { hasText: '<img src=x' }).first();
    await expect.poll(() => text.textContent()).toContain('</script><script>');
    expect((await text.textContent())!.length).toBeLessThan(10_000);
    await page
      .locator('.conversation')
      .getByRole('button', { name: /more characters of/ })
      .first()
      .click();
    await expect.poll(async () => (await text.textContent())!.length).toBeGreaterThan(100_000);
  });
});

function rewardText(reward: number | null): string {
  return reward === null ? 'no reward' : reward.toFixed(3);
}
