/** Recordings of `temper serve --record`, with a scripted engine and a store on disk. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type OpenAI from 'openai';
import { describe, expect, test, vi } from 'vitest';
import { RecordingWriter } from '../../../store/records/production/recordings.ts';
import { fakeAdapterSha256 } from '../../fake-engine.ts';
import { askAt } from './asking.ts';
import { ALL, assistant, FEEDBACK_KEY, KEY, recordingServer, user } from './recording-server.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const SECRET = 'Ada Lovelace, card 4242-4242';
const at = recordingServer();

describe('what is recorded', () => {
  test('nothing without --record: no file is made, and there is no feedback', async () => {
    await at().serve(null);
    await at().chat([user(SECRET)]);
    await at().client.responses.create({ model: 'demo', input: SECRET });
    expect(readdirSync(at().folder)).toEqual([]);
    expect(await at().rate({ id: 'x', reward: 1 }, KEY)).toMatchObject({ status: 404 });
    expect(await at().rate({ id: 'x', reward: 1 })).toMatchObject({ status: 401 });
  });

  test('an answer as training needs it, and no key or name of a user', async () => {
    await at().serve(ALL);
    const { id, choices } = await at().chat([user('n?')], { user: SECRET, metadata: { customer: SECRET } });
    expect(choices[0]).toMatchObject({ message: { content: 're: n?' }, logprobs: null });
    expect(choices[0]).not.toHaveProperty('token_ids');
    const [only, ...others] = await at().recorded();
    expect(others).toEqual([]);
    expect(only).toMatchObject({
      id: id.replace('chatcmpl-', ''),
      conversation: `conv_${only!.id}`,
      api: 'chat/completions',
      policy: 'demo@2',
      untrainable: null,
      call: {
        request: { messages: [user('n?')], temperature: 0.75, max_tokens: 33 },
        message: { role: 'assistant', content: 're: n?' },
        adapterSha256: fakeAdapterSha256('demo@2'),
      },
    });
    const { promptTokenIds, tokenIds, logprobs } = only!.call;
    expect(promptTokenIds.length).toBeGreaterThan(0);
    expect(logprobs).toHaveLength(tokenIds.length);
    for (const secret of [KEY, FEEDBACK_KEY, SECRET]) expect(at().onDisk()).not.toContain(secret);
  });

  test('the client gets the same answer, but for its id, with and without --record', async () => {
    const answers = [];
    for (const plan of [null, ALL]) {
      await at().serve(plan);
      answers.push(await at().chat([user('n?')], { seed: 1, logprobs: true }));
    }
    const [{ id: plain, ...without }, { id, ...told }] = answers as [OpenAI.ChatCompletion, OpenAI.ChatCompletion];
    const { token_ids: _ids, ...choice } = without.choices[0] as OpenAI.ChatCompletion.Choice & { token_ids: unknown };
    expect(told).toEqual({ ...without, choices: [choice] });
    expect([plain.length, id.length]).toEqual(['chatcmpl-'.length + 24, 'chatcmpl-'.length + 32]);
  });

  test('identical requests with the same seed have ids of their own, in every API, streamed or not', async () => {
    await at().serve(ALL);
    const ids: string[] = [];
    for (let again = 0; again < 2; again++) {
      ids.push((await at().chat([user('n?')], { seed: 7 })).id);
      const chunks = await at().client.chat.completions.create({
        model: 'demo',
        messages: [user('n?')],
        seed: 7,
        stream: true,
      });
      for await (const chunk of chunks) ids.push(chunk.id);
      ids.push((await at().client.responses.create({ model: 'demo', input: 'n?' })).id);
      const message = { model: 'demo', max_tokens: 33, messages: [user('n?')] };
      const headers = { 'x-api-key': KEY };
      const { body } = await askAt(at().port, '/v1/messages', headers, JSON.stringify(message));
      ids.push((JSON.parse(body) as { id: string }).id);
      const url = `http://127.0.0.1:${at().port}/v1/messages`;
      const streamed = await fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ ...message, stream: true }),
      });
      ids.push(/"id":"(msg_\w+)"/.exec(await streamed.text())![1]!);
    }
    expect(new Set(ids).size).toBe(10);
    const kept = (await at().recorded()).map(({ id }) => id);
    expect(new Set(ids.map((id) => id.replace(/^[a-z]+[-_]/, '')))).toEqual(new Set(kept));
    for (const id of new Set(ids)) expect(await at().rate({ id, reward: 1 })).toMatchObject({ status: 200 });
  });

  test('what cannot be trained says so, and several choices or store: false are not kept', async () => {
    await at().serve(ALL);
    await at().chat([user('a')], { temperature: 0 });
    await at().chat([user('b')], { top_p: 0.5 });
    await at().chat([user('c')], { temperature: 0.75, top_p: 1, seed: 3, max_tokens: 4 });
    await at().chat([user('d')], { n: 2 });
    await at().chat([user('e')], { store: false });
    expect((await at().recorded()).map(({ untrainable }) => untrainable)).toEqual(['parameters', 'parameters', null]);
  });

  test('a share of the conversations is kept, each as a whole', async () => {
    await at().serve({ ...ALL, share: 0.5 });
    const metadata = (name: number) => ({ metadata: { conversation_id: `c${name}` } });
    for (let name = 0; name < 20; name++)
      for (let turn = 0; turn < 2; turn++) await at().chat([user(`turn ${turn}`)], metadata(name));
    const names = (await at().recorded()).map(({ conversation }) => conversation);
    const kept = new Set(names);
    expect(kept.size).toBeGreaterThan(3);
    expect(kept.size).toBeLessThan(17);
    expect(names).toHaveLength(2 * kept.size);
  });

  test('a store that is full is told once, and fails no request', async () => {
    await at().serve(ALL);
    rmSync(at().folder, { recursive: true });
    writeFileSync(at().folder, 'not a folder');
    expect((await at().chat([user('a')])).choices[0]!.message.content).toBe('re: a');
    expect((await at().chat([user('b')])).choices[0]!.message.content).toBe('re: b');
    expect(at().warnings).toHaveLength(1);
    expect(at().warnings[0]).toContain('an answer was not recorded');
    rmSync(at().folder);
    const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 3_700_000);
    await at().chat([user('c')]);
    expect(await at().recorded()).toHaveLength(1);
    const again = new Error(at().warnings[0]!.replace('an answer was not recorded: ', ''));
    const append = vi.spyOn(RecordingWriter.prototype, 'append').mockRejectedValue(again);
    for (const text of ['d', 'e']) await at().chat([user(text)]);
    expect(at().warnings).toEqual([at().warnings[0], at().warnings[0]]);
    for (const mock of [append, now]) mock.mockRestore();
  });
});

describe('which answers are one conversation', () => {
  const conversations = async () => (await at().recorded()).map(({ conversation }) => conversation);

  test('those whose messages begin with earlier ones, and an answer says its name', async () => {
    await at().serve(ALL);
    await at().chat([user('a')]);
    await at().chat([user('a'), assistant('re: a'), user('b')]);
    await at().client.responses.create({ model: 'demo', input: 'other' });
    const { response } = await at()
      .client.chat.completions.create({
        model: 'demo',
        messages: [user('a'), assistant('re: a'), user('b'), assistant('re: b'), user('c')],
      })
      .withResponse();
    const [first, second, other, third] = await conversations();
    expect([second, third]).toEqual([first, first]);
    expect(other).not.toBe(first);
    expect(response.headers.get('x-temper-conversation')).toBe(first);
    expect(response.headers.get('x-temper-policy')).toBe('demo@2');
    expect(response.headers.get('x-temper-adapter')).toBe(fakeAdapterSha256('demo@2'));
  });

  test('those that continue a response by its id', async () => {
    await at().serve(ALL);
    const { id } = await at().client.responses.create({ model: 'demo', input: 'a' });
    await at().client.responses.create({ model: 'demo', input: 'b', previous_response_id: id });
    const [first, second] = await conversations();
    expect(second).toBe(first);
  });

  test('not those of two users who begin alike', async () => {
    await at().serve(ALL);
    for (let name = 0; name < 2; name++) await at().chat([user('hello')]);
    await at().chat([user('hello'), assistant('re: hello'), user('I am the first')]);
    await at().chat([user('hello'), assistant('re: hello'), user('I am the second')]);
    expect(new Set(await conversations()).size).toBe(4);
  });

  test('those that the client names alike, by the header or in metadata', async () => {
    await at().serve(ALL);
    const named = { headers: { 'x-temper-conversation': 'ticket 7' } };
    await at().client.chat.completions.create({ model: 'demo', messages: [user('a')] }, named);
    await at().client.responses.create({ model: 'demo', input: 'b', metadata: { conversation_id: 'ticket 7' } });
    expect(await conversations()).toEqual(['ticket 7', 'ticket 7']);
    const rated = { id: 'ticket 7', label: 'thumbs_up' };
    const [known, unknown] = [await at().rate(rated), await at().rate({ ...rated, id: 'ticket 8' })];
    expect([known.status, known.error.message]).toEqual([404, String(unknown.error.message).replace('8', '7')]);
    expect(await at().rate(rated, FEEDBACK_KEY, FEEDBACK_KEY)).toMatchObject({ status: 404 });
    expect(await at().rate(rated, FEEDBACK_KEY, KEY)).toMatchObject({ status: 200 });
    await expect(at().chat([user('a')], { metadata: { conversation_id: 'x'.repeat(600) } })).rejects.toMatchObject({
      status: 400,
    });
  });
});

describe('redaction', () => {
  const withRedaction = async (source: string): Promise<void> => {
    const file = join(temporaryFolder(), 'redact.ts');
    writeFileSync(file, source);
    await at().serve({ ...ALL, redact: file });
  };

  test('a changed conversation is kept as it was changed, without the ids that would tell the rest', async () => {
    await withRedaction(
      `export default ({ messages }) => ({ messages: messages.map((message) => ({ ...message, content: message.content.replaceAll(${JSON.stringify(SECRET)}, '[name]') })) });`,
    );
    await at().chat([user(`I am ${SECRET}`)], { stop: [SECRET] });
    await at().chat([user('n?')]);
    await at().chat([user('m?')], { stop: [SECRET], max_tokens: 5 });
    const [changed, same, parameters] = await at().recorded();
    expect(changed).toMatchObject({
      untrainable: 'redacted',
      call: {
        request: { messages: [user('I am [name]')] },
        message: { content: 're: I am [name]' },
        promptTokenIds: [],
        tokenIds: [],
        logprobs: [],
      },
    });
    expect(same).toMatchObject({ untrainable: null, call: { message: { content: 're: n?' } } });
    expect(same!.call.tokenIds.length).toBeGreaterThan(0);
    expect(parameters).toMatchObject({ untrainable: null, call: { message: { content: 're: m?' } } });
    expect(Object.keys(parameters!.call.request)).toEqual(['messages', 'temperature', 'max_tokens']);
    expect(at().onDisk()).not.toContain('Lovelace');
  });

  test.each([
    ['null', '() => null', 0],
    ['an error', "() => { throw new Error('no'); }", 1],
    ['no messages', '() => ({ messages: 1 })', 1],
  ])('%s keeps nothing, and the answer is given', async (_name, source, told) => {
    await withRedaction(`export default ${source};`);
    expect((await at().chat([user(SECRET)])).choices[0]!.message.content).toBe(`re: ${SECRET}`);
    expect(await at().recorded()).toEqual([]);
    expect(at().onDisk()).not.toContain('Lovelace');
    expect(at().warnings).toHaveLength(told);
  });

  test('a module without a function is refused before anything is served', async () => {
    await expect(withRedaction('export default 1;')).rejects.toThrow('must have a default export');
  });
});
