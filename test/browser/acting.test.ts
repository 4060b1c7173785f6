/** Acting from the pages: dialogs of actions, chats. */
import { expect, test } from 'vitest';
import { writeUiStore } from '../../bench/ui/write-store.ts';
import type { AttemptsView, AttemptView } from '../../views/api/attempt-views.ts';
import type { ChatEvent, ChatRequest } from '../../views/api/requests.ts';
import { json, result, takeActions } from './take-actions.ts';
import { findViolations } from './axe.ts';
import { describePages, goTo } from './open-pages.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const folder = temporaryFolder();
await writeUiStore({ folder, run: 'demo', steps: 3, groups: 1, attempts: 4, turns: 2, blobBytes: 100 });

const middleOf = ({ x, y, width, height }: { x: number; y: number; width: number; height: number }) =>
  [x + width / 2, y + height / 2] as const;

await describePages('acting', folder, ({ open, openApart, ask }) => {
  test('an action is done only after the server said what will happen, and is the same one when it is sent again', async () => {
    const page = await open('/');
    const failures = ['the disk is away'];
    const taken = await takeActions(page, (request) => {
      const failure = request.isConfirmed ? failures.pop() : undefined;
      return failure ?? result(request, 'Run demo goes back to step 2.');
    });
    await page.reload();
    await goTo(page, '/runs/demo/checkpoints?at=demo@2');
    await page.getByRole('button', { name: 'Roll back to it' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('Run demo goes back to step 2.').waitFor();
    expect(await dialog.textContent()).toContain('temper rollback demo --step 2');
    expect(taken.map(({ isConfirmed, input }) => [isConfirmed, input])).toEqual([[false, { run: 'demo', step: '2' }]]);
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Roll back', exact: true }).click();
    await dialog.getByText('the disk is away').waitFor();
    await dialog.getByRole('button', { name: 'Roll back', exact: true }).click();
    await dialog.getByText('Close', { exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(taken.map(({ action, isConfirmed }) => [action, isConfirmed])).toEqual([
      ['rollback', false],
      ['rollback', true],
      ['rollback', true],
    ]);
    expect(taken[1]!.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(taken[2]!.requestId).toBe(taken[1]!.requestId);
  });

  test('a double click on Continue, or a held Enter, confirms nothing', async () => {
    const page = await openApart('/');
    const taken = await takeActions(page, (request) => result(request, 'Run demo goes back to step 2.'));
    await page.clock.install();
    await page.reload();
    await goTo(page, '/runs/demo/checkpoints?at=demo@2');
    await page.getByRole('button', { name: 'Roll back to it' }).click();
    const dialog = page.getByRole('dialog');
    // The dialog opens in an effect: before it has, a clock that stands would keep it shut.
    const box = (await dialog.getByRole('button', { name: 'Continue' }).boundingBox())!;
    // No time passes between the clicks, however long they take.
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await page.mouse.click(...middleOf(box));
    await dialog.getByText('Run demo goes back to step 2.').waitFor();
    // Again as soon as the button that confirms has come, wherever the plan has moved it.
    const confirm = (await dialog.getByRole('button', { name: 'Roll back', exact: true }).boundingBox())!;
    await page.mouse.click(...middleOf(confirm));
    await page.mouse.click(...middleOf(confirm), { clickCount: 2 });
    await dialog.getByRole('button', { name: 'Back', exact: true }).click();
    await dialog.getByLabel(/^Step/).waitFor();
    expect(await page.evaluate('document.activeElement.name')).toBe('step');
    await page.keyboard.down('Enter');
    await dialog.getByText('Run demo goes back to step 2.').waitFor();
    // A key that is held is pressed again and again.
    await page.clock.runFor(2000);
    for (let times = 0; times < 5; times += 1) await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    expect(taken.map(({ isConfirmed }) => isConfirmed)).toEqual([false, false]);
    // Nor does a key reach the page below.
    await page.keyboard.press('?');
    await page.clock.runFor(1000);
    expect(await page.getByRole('dialog').count()).toBe(1);
    // The plan has the focus; then come a button that copies, Back, and the one that confirms.
    for (const name of ['Copy', 'Back', 'Roll back']) {
      await page.keyboard.press('Tab');
      expect(await page.evaluate('document.activeElement.textContent')).toBe(name);
    }
    await page.keyboard.press('Enter');
    await dialog.getByText('Close', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(taken.map(({ isConfirmed }) => isConfirmed)).toEqual([false, false, true]);
  });

  test('the dialog stays, with what was done, when its action gives the run another state', async () => {
    const page = await open('/');
    let state = 'running';
    await page.route('**/api/events', (route) => route.abort());
    await page.route('**/api/runs', async (route) => {
      const rows = (await (await route.fetch()).json()) as object[];
      await json(
        route,
        rows.map((row) => ({ ...row, state })),
      );
    });
    await takeActions(page, (request) => {
      if (request.isConfirmed) state = 'paused';
      return result(request, 'Run demo pauses.');
    });
    await page.reload();
    await goTo(page, '/runs/demo');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.locator('.action-menu button', { hasText: 'Resume' }).waitFor();
    expect(await dialog.textContent()).toContain('Run demo pauses.');
  });

  test('a refusal is shown as the server wrote it, and the form stays', async () => {
    const page = await open('/');
    await takeActions(page, () => 'the run is at step 3; choose a step below it');
    await page.reload();
    await goTo(page, '/runs/demo/checkpoints?at=demo@3');
    await page.getByRole('button', { name: 'Roll back to it' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Step/).fill('');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    expect(await dialog.getByRole('alert').textContent()).toContain('Step is missing');
    await dialog.getByLabel(/^Step/).fill('3');
    await page.keyboard.press('Enter');
    await dialog.getByText('the run is at step 3; choose a step below it').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });

  test('settings are chosen from a list with their values and ranges; a step has its range', async () => {
    const page = await open('/');
    await page.route('**/api/events', (route) => route.abort());
    await page.route('**/api/runs', async (route) => {
      const rows = (await (await route.fetch()).json()) as object[];
      await json(
        route,
        rows.map((row) => ({ ...row, state: 'running' })),
      );
    });
    const taken = await takeActions(page, (request) => result(request, 'Run demo gets a temperature.'));
    await page.reload();
    await goTo(page, '/runs/demo');
    const menu = page.locator('.action-menu .menu');
    await menu.locator('summary').click();
    await menu.getByRole('button', { name: 'Roll back' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('from 0 to 3').waitFor();
    expect(await menu.getAttribute('open')).toBeNull();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await menu.locator('summary').click();
    await menu.getByRole('button', { name: 'Change settings' }).click();
    const choice = dialog.getByLabel('Add a setting');
    await choice.waitFor();
    expect(await choice.textContent()).toContain('temperature, now 1: greater than 0 and at most 2');
    await choice.selectOption('temperature=1');
    const lines = dialog.locator('textarea');
    expect(await lines.inputValue()).toBe('temperature=1');
    await lines.fill('temperature=0.8');
    await choice.selectOption('groupSize=4');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('Run demo gets a temperature.').waitFor();
    expect(taken[0]?.input).toEqual({ run: 'demo', settings: ['temperature=0.8', 'groupSize=4'] });
  });

  test('a replay begins at the turn whose button was pressed, and leads to what it made', async () => {
    const page = await open('/');
    const made = { run: 'demo', attempt: '0.2.0.1' };
    const taken = await takeActions(page, (request) => result(request, 'Turn 2 is asked anew.', made));
    await page.reload();
    await goTo(page, '/runs/demo/attempts/0.2.0.0');
    await page.getByRole('button', { name: 'Replay from here' }).nth(1).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Model/).fill('demo@3');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click();
    await dialog.getByRole('link', { name: 'Open the replay' }).click();
    await page.waitForURL(/attempts\/0\.2\.0\.1$/);
    expect(taken[1]).toMatchObject({ action: 'replay', input: { attempt: '0.2.0.0', fromTurn: 1, model: 'demo@3' } });
  });

  test('two models answer side by side, what they say is text, and Stop ends both', async () => {
    const page = await open('/runs/demo/chat?left=demo@3&right=base:demo');
    const asked: ChatRequest[] = [];
    const events: ChatEvent[] = [
      { kind: 'waiting', text: 'the engine starts' },
      { kind: 'text', text: '<img src=x onerror="globalThis.owned = 1">' },
      { kind: 'end', finishReason: 'stop', tokens: 7 },
    ];
    await page.route('**/api/chat', async (route) => {
      const request = route.request().postDataJSON() as ChatRequest;
      asked.push(request);
      if (request.messages.at(-1)!.content === 'never') return;
      const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
      await route.fulfill({ contentType: 'text/event-stream', body });
    });
    await page.getByLabel('System prompt').fill('Be short.');
    await page.getByLabel('Temperature').fill('0.5');
    await page.getByLabel('Message').fill('Hello');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByText('ended by stop, 7 tokens').count()).toBe(2);
    expect(await page.locator('.chat-log img').count()).toBe(0);
    expect(await page.evaluate('"owned" in globalThis')).toBe(false);
    expect(asked.map(({ model }) => model).toSorted()).toEqual(['base:demo', 'demo@3']);
    expect(asked[0]).toMatchObject({
      temperature: 0.5,
      messages: [
        { role: 'system', content: 'Be short.' },
        { role: 'user', content: 'Hello' },
      ],
    });
    await page.getByLabel('Message').fill('never');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await expect.poll(() => page.locator('.chat-log').getByText('stopped').count()).toBe(2);
    await page.getByRole('button', { name: 'Clear' }).click();
    expect(await page.locator('.chat-log .message').count()).toBe(0);
  });

  test('a chat begins as a scenario of the agent: with its system prompt, and its question to be sent', async () => {
    const find = async () => (await ask<AttemptsView>('runs/demo/attempts?kind=eval&limit=1')).rows[0];
    await expect.poll(find).toBeDefined();
    const attempt = await find();
    const { turns } = await ask<AttemptView>(`runs/demo/attempts/${attempt!.id}`);
    const [system, question] = turns[0]!.messages;
    const page = await open('/runs/demo/chat?left=demo@3');
    const asked: ChatRequest[] = [];
    await page.route('**/api/chat', async (route) => {
      asked.push(route.request().postDataJSON() as ChatRequest);
      const end: ChatEvent = { kind: 'end', finishReason: 'stop', tokens: 1 };
      await route.fulfill({ contentType: 'text/event-stream', body: `data: ${JSON.stringify(end)}\n\n` });
    });
    await page.getByLabel('Begin as a scenario of the agent').selectOption(attempt!.scenario);
    await expect.poll(() => page.getByLabel('System prompt').inputValue()).toBe(system!.text);
    expect(await page.getByLabel('Message').inputValue()).toBe(question!.text);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('ended by stop, 1 token').waitFor();
    expect(asked[0]?.messages).toEqual([
      { role: 'system', content: system!.text },
      { role: 'user', content: question!.text },
    ]);
  });
});
