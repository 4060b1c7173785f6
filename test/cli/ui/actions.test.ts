/** Actions of `temper ui`: what they say before they are done, and that they are done once. */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ActionDesk } from '../../../cli/ui/actions/answer-action.ts';
import type { UiOperation } from '../../../cli/ui/actions/operations.ts';
import type { UiPlace } from '../../../cli/ui/chat/engines.ts';
import { RUN_ARGUMENT } from '../../../operations/flags.ts';
import { shellText } from '../../../operations/words.ts';
import type { ActionResult } from '../../../views/api/requests.ts';
import { temporaryProject, writeFixtureRun, type FixtureOptions } from '../fixture-store.ts';
import { serveUi, type ServedUi } from './served-ui.ts';

async function served(options: FixtureOptions = {}): Promise<ServedUi> {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 12, ...options });
  return serveUi(project);
}

async function say(
  ui: ServedUi,
  { action, ...input }: { action: string; [name: string]: unknown },
  isConfirmed = false,
) {
  const { status, text } = await ui.post('/api/actions', { action, input: { run: 'demo', ...input }, isConfirmed });
  const answer = JSON.parse(text) as ActionResult & { error?: { message: string } };
  return status === 200 ? `${answer.says}\n$ ${answer.command}` : `${status} ${answer.error?.message}`;
}

describe('before it is confirmed, an action says what will happen', () => {
  test('to a live run', async () => {
    const ui = await served({ state: { state: 'running', step: 8, steps: 12 } });
    const says = async (request: { action: string; [name: string]: unknown }, ...parts: string[]) => {
      const said = await say(ui, request);
      for (const part of parts) expect(said).toContain(part);
    };
    const ending = 'demo has finished step 8 of 12 and completes the step in progress. Then demo ';
    await says({ action: 'pause', reason: 'a "look"' }, `${ending}pauses`, `\n$ temper pause demo --reason 'a "look"'`);
    await says({ action: 'resume' }, 'demo continues with step 9 of 12.\n$ temper resume demo');
    await says({ action: 'stop' }, `${ending}ends and keeps its result`, '\n$ temper stop demo');
    await says({ action: 'stop', now: true }, 'demo discards the step in progress', '\n$ temper stop demo --now');
    await says(
      { action: 'set', settings: ['learningRate=1e-5', 'steps=40'] },
      'demo gets learningRate from 0.00005 to 0.00001, steps from 12 to 40, from its next step on',
      '\n$ temper set demo learningRate=1e-5 steps=40',
    );
    await says(
      { action: 'rollback', step: 5, reason: "it's worse" },
      'drops the step in progress: it goes back to step 5 and trains 7 steps on branch 1',
      'Steps 6 to 8 stay readable on branch 0',
      String.raw`$ temper rollback demo --step 5 --reason 'it'\''s worse'`,
    );
    await says({ action: 'rollback', step: 8 }, 'goes back to step 8 and trains 4 steps', '--step 8');
  });

  test('to one that has ended', async () => {
    const ui = await served();
    expect(await say(ui, { action: 'pause' })).toContain('422 demo has ended (completed) after step 12; roll it back');
    const back = await say(ui, { action: 'rollback', step: 5, set: ['learningRate=1e-5'] });
    expect(back).toContain(
      'demo has ended (completed) and is started again: it goes back to step 5 and trains 7 steps',
    );
    expect(back).toContain('\n$ temper rollback demo --step 5 --set learningRate=1e-5');
  });

  test('what cannot be done is refused with the reason', async () => {
    const ui = await served({ state: { state: 'running', step: 8, steps: 12 } });
    const refusals: [request: { action: string; [name: string]: unknown }, said: string][] = [
      [{ action: 'rollback', step: 9 }, '422 step must be at most 8, the last finished step of demo, got 9'],
      [{ action: 'rollback' }, '422 --step is missing; pass --step N'],
      [{ action: 'rollback', step: '--set' }, '422 --step must be a whole number of at least 0, got "--set"'],
      [{ action: 'rollback', step: { at: 1 } }, '422 input.step: '],
      [{ action: 'set', settings: ['temperature=9'] }, '422 temperature must be greater than 0 and at most 2, got 9'],
      [{ action: 'set', settings: ['loss=9'] }, '422 loss cannot be changed after a run has started'],
      [{ action: 'set', settings: [] }, '422 KEY=VALUE is missing'],
      [{ action: 'fork', step: 3, name: 'No Name' }, '422 name must be lower case letters, digits and ._-'],
      [{ action: 'fork', step: 3, name: 'demo' }, '422 the run demo exists already; choose another name'],
      [{ action: 'pause', run: 'nobody' }, '404 no run "nobody" in this store'],
      [{ action: 'explode' }, '422 action must be one of '],
      [{ action: 'pause', force: true }, '422 force is no parameter of pause, only run, reason; leave it out'],
    ];
    for (const [request, said] of refusals) expect(await say(ui, request)).toContain(said);
    const { text } = await ui.ask('POST', '/api/actions', { body: '{', headers: { ...JSON_HEADERS } });
    expect(JSON.parse(text)).toMatchObject({
      error: { message: 'a body must be JSON, got "{"', code: 'invalid_json' },
    });
  });

  test('without Temporal, a confirmed action says what to start', async () => {
    const ui = await served({ state: { state: 'running', step: 8, steps: 12 } });
    expect(await say(ui, { action: 'pause' }, true)).toMatch(
      /^422 no local stack is running .* temper dev or temper train/,
    );
  });
});

const JSON_HEADERS = { authorization: 'Bearer a key of temper ui in these tests', 'content-type': 'application/json' };

describe('a confirmed request', () => {
  function desk(act: (place: UiPlace) => Promise<string>) {
    const stop: UiOperation = {
      name: 'stop',
      summary: '',
      arguments: { run: RUN_ARGUMENT },
      flags: { now: { kind: 'boolean', description: '' } },
      effect: 'changes',
      run: async (_, place) => ({ says: await act(place) }),
      lines: (result) => [(result as { says: string }).says],
    };
    const acted: string[] = [];
    return { acted, desk: new ActionDesk({} as never, (run) => acted.push(run), [stop]) };
  }
  const STAYS = new AbortController().signal;
  const body = (more: object) => JSON.stringify({ action: 'stop', input: { run: 'demo' }, isConfirmed: true, ...more });

  test('that is sent again does nothing twice, also while the first is in progress', async () => {
    let done = 0;
    const { desk: actions, acted } = desk(() => Promise.resolve(`done ${++done}`));
    const answers = [actions.answer(body({ requestId: 'a' }), STAYS), actions.answer(body({ requestId: 'a' }), STAYS)];
    expect((await Promise.all(answers)).map(({ says }) => says)).toEqual(['done 1', 'done 1']);
    expect(() => actions.answer(body({ requestId: 'a', input: { run: 'other' } }), STAYS)).toThrow(
      'requestId was used for another',
    );
    expect((await actions.answer(body({ requestId: 'b' }), STAYS)).says).toBe('done 2');
    expect(acted).toEqual(['demo', 'demo']);
  });

  test('is given up once everybody who sent it is gone', async () => {
    const { desk: actions } = desk(({ gone }) => once(gone, 'abort').then(() => 'given up'));
    const pages = [new AbortController(), new AbortController()];
    const answers = pages.map(({ signal }) => actions.answer(body({ requestId: 'a' }), signal));
    pages[0]!.abort();
    const before = await Promise.race([answers[0], setImmediate('goes on')]);
    pages[1]!.abort();
    expect([before, (await answers[0]!).says]).toEqual(['goes on', 'given up']);
  });

  test('that failed may be sent again', async () => {
    let calls = 0;
    const { desk: actions } = desk(() => (++calls === 1 ? Promise.reject(new Error('away')) : Promise.resolve('done')));
    await expect(actions.answer(body({ requestId: 'a' }), STAYS)).rejects.toThrow('away');
    expect((await actions.answer(body({ requestId: 'a' }), STAYS)).says).toBe('done');
  });
});

test('commands are quoted for a shell', () => {
  expect(shellText(['temper', 'pause', 'demo', '--reason', "it's $HOME; rm"])).toBe(
    String.raw`temper pause demo --reason 'it'\''s $HOME; rm'`,
  );
});
