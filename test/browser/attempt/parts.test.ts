/** Computations of the attempt's pages, without a browser. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { alignBlocks, countShared, diffWords, type Block } from '../../../browser/attempt/align.ts';
import { curlCommand, shellQuote } from '../../../browser/attempt/curl.ts';
import { indentJson } from '../../../browser/attempt/json-text.ts';
import { numbersOf, scaleOf, shadeOf } from '../../../browser/attempt/overlays.ts';
import { splitThoughts } from '../../../browser/attempt/thoughts.ts';
import { chunkStarts, showToken } from '../../../browser/attempt/token-text.ts';
import { actionsFor, formOf, readActionForm, whyNot } from '../../../browser/parts/action-fields.ts';
import { splitPrompt } from '../../../browser/pages/prompt-parts.ts';
import { readEvents } from '../../../browser/pages/read-events.ts';
import { ACTION_FORMS } from '../../../cli/ui/actions/forms.ts';
import type { TurnTokens } from '../../../views/api/attempt-views.ts';
import type { RunStateName } from '../../../views/api/run-views.ts';

test('JSON is indented as it was written: numbers, order, doubled keys and escapes stay', () => {
  expect(indentJson('{"a":1.0,"a":12345678901234567890,"b":[],"c":{"d":[true,null,"x,\\"{"]}}')).toBe(
    '{\n  "a": 1.0,\n  "a": 12345678901234567890,\n  "b": [],\n  "c": {\n    "d": [\n      true,\n      null,\n      "x,\\"{"\n    ]\n  }\n}',
  );
  expect(indentJson('{"a":')).toBeNull();
  expect(indentJson('7')).toBeNull();
});

test('thoughts are told from what was said, also where the prompt opened them, and where nothing closes them', () => {
  expect(splitThoughts('<think>a</think>\nb')).toEqual([
    { kind: 'thought', text: 'a' },
    { kind: 'text', text: '\nb' },
  ]);
  expect(splitThoughts('a</think>b')).toEqual([
    { kind: 'thought', text: 'a' },
    { kind: 'text', text: 'b' },
  ]);
  expect(splitThoughts('b<think>a')).toEqual([
    { kind: 'text', text: 'b' },
    { kind: 'thought', text: 'a' },
  ]);
  expect(splitThoughts('plain')).toEqual([{ kind: 'text', text: 'plain' }]);
});

/** Body that curl would send, by a real shell. */
function bodyOf(command: string): unknown {
  const script = `curl() { while [ $# -gt 0 ]; do
    case "$1" in --data-raw) printf %s "$2"; return;; --data-binary) cat; return;; esac; shift; done; }\n${command}`;
  return JSON.parse(execFileSync('sh', ['-s'], { input: script, encoding: 'utf8', maxBuffer: 1e8 }));
}

test('a shell hands on exactly the recorded request, whatever it holds and however long it is', () => {
  const hostile = `'; touch /tmp/owned; '$(id)\`id\`"\\n\nTEMPER_BODY\n\u202e</script>`;
  const request = { messages: [{ role: 'user', content: hostile }], temperature: 0.5 };
  expect(bodyOf(curlCommand(request, "demo@1'2"))).toEqual({ model: "demo@1'2", ...request });
  const long = { messages: [{ role: 'user', content: hostile.repeat(5000) }] };
  expect(bodyOf(curlCommand(long, 'demo@1'))).toEqual({ model: 'demo@1', ...long });
  expect(shellQuote("it's")).toBe(`'it'\\''s'`);
});

const TURN: TurnTokens = {
  call: 0,
  ids: [1, 2, 3, 4],
  text: ['a', 'b', 'c', 'd'],
  control: [],
  sampledFrom: 2,
  shared: 0,
  logprobs: [-0.1, -5],
  trainerLogprobs: [-0.1 + Math.log(1.1), null],
  entropies: [0.5, 1],
  advantages: [-1, 0.5],
  mask: [true, false],
};

test('an overlay takes its numbers from the sampled token, and has none of a prompt token', () => {
  expect(numbersOf(TURN, 1, 0.7)).toMatchObject({ isSampled: false, advantage: null, logprob: null });
  expect(numbersOf(TURN, 2, 0.7)).toMatchObject({ advantage: -1, logprob: -0.1, entropy: 0.5, isTrained: true });
  expect(numbersOf(TURN, 2, 0.7).ratio).toBeCloseTo(1.1);
  expect(numbersOf(TURN, 3, 0.7)).toMatchObject({ ratio: null, isTrained: false });
  expect(numbersOf({ ...TURN, advantages: null }, 3, 0.7).advantage).toBe(0.7);
});

test('shades follow the scale: both signs of an advantage, surprise, and nothing where nothing was recorded', () => {
  const shade = (overlay: Parameters<typeof scaleOf>[0], index: number, turn = TURN) =>
    shadeOf(overlay, numbersOf(turn, index, null), scaleOf(overlay, [turn], null));
  expect([shade('advantage', 2), shade('advantage', 3), shade('advantage', 0)]).toEqual([['down', 8], ['up', 4], ['']]);
  expect([shade('logprob', 2), shade('logprob', 3)]).toEqual([[''], ['up', 8]]);
  expect([shade('mask', 2), shade('mask', 3), shade('mask', 1)]).toEqual([['trained'], ['untrained'], ['']]);
  expect([shade('ratio', 2), shade('ratio', 3)]).toEqual([['up', 8], ['']]);
  expect(scaleOf('entropy', [{ ...TURN, entropies: null }], null)).toBeNull();
});

test('white space, control characters and those that turn text around are visible', () => {
  expect(showToken(' a', false)).toBe(' a');
  expect(showToken(' a', true)).toBe('·a');
  expect(showToken('  ', false)).toBe('··');
  expect(showToken('a\n\t\u001b[2J\u202e', false)).toBe('a↵\n⇥\\u001b[2J\\u202e');
});

test.each([
  ['after the last end of a line', ['a', 'b\n', 'c', 'd\n', 'e', 'f'], [0, 2, 4]],
  ['where they are full, without one', ['a', 'b', 'c', 'd', 'e', 'f'], [0, 3]],
  ['of ids alone', [], [0, 3]],
])('lists of tokens end %s', (_, text, starts) => {
  expect(chunkStarts({ ids: [1, 2, 3, 4, 5, 6], text }, 3)).toEqual(starts);
});

const block = (turn: number, role: string, text: string): Block => ({ turn, role, text });

test('turns of one number are compared; a short answer that comes twice ties nothing together', () => {
  const left = [
    block(0, 'user', 'board'),
    block(0, 'assistant', '1'),
    block(1, 'user', 'x'),
    block(1, 'assistant', '7'),
  ];
  const right = [block(0, 'user', 'board'), block(0, 'assistant', '7')];
  expect(alignBlocks(left, right)).toEqual([
    { left: left[0], right: right[0], isSame: true },
    { left: left[1], right: right[1], isSame: false },
    { left: left[2], right: null, isSame: false },
    { left: left[3], right: null, isSame: false },
  ]);
});

test('messages that differ stand beside one of their own role, the others alone, and none is left out', () => {
  const left = [block(0, 'assistant', 'a call'), block(0, 'tool', 'a result'), block(0, 'assistant', 'yes')];
  const right = [block(0, 'user', 'once more'), block(0, 'assistant', 'another call'), block(0, 'assistant', 'no')];
  const pairs = alignBlocks(left, right).map((row) => [row.left?.text ?? null, row.right?.text ?? null]);
  expect(pairs).toEqual([
    [null, 'once more'],
    ['a call', 'another call'],
    ['a result', null],
    ['yes', 'no'],
  ]);
});

test('prompts share the messages with which all of them begin', () => {
  const message = (text: string, cut = 0) => ({ role: 'user', text, toolCalls: [], cut });
  const attempt = (...texts: string[]) => ({ turns: [{ messages: texts.map((text) => message(text)) }] });
  expect(countShared([attempt('a', 'b', 'c'), attempt('a', 'b', 'd')])).toBe(2);
  expect(countShared([attempt('a', 'b'), attempt('a')])).toBe(1);
  expect(countShared([attempt('a'), { turns: [] }, attempt('a')])).toBe(1);
  expect(countShared([attempt('a')])).toBe(0);
  const cut = { turns: [{ messages: [message('a', 5)] }] };
  expect(countShared([cut, cut])).toBe(0);
});

test('words that differ are marked on both sides, and the text of each side stays whole', () => {
  const parts = diffWords('the cat sat', 'the dog sat');
  const side = (kind: string) => parts.filter((part) => part.kind === 'same' || part.kind === kind);
  expect(
    side('removed')
      .map(({ text }) => text)
      .join(''),
  ).toBe('the cat sat');
  expect(
    side('added')
      .map(({ text }) => text)
      .join(''),
  ).toBe('the dog sat');
  expect(parts.filter(({ kind }) => kind !== 'same').map(({ text }) => text)).toEqual(['cat', 'dog']);
});

const info = {
  version: '1',
  store: '',
  isReadOnly: false,
  isExport: false,
  hasTemporal: true,
  temporalUi: null,
  actions: ACTION_FORMS,
};

test('a form says what is missing, and a list has an item a line', () => {
  const fieldsOf = (action: string) => formOf(action, info)!.fields.filter(({ name }) => name !== 'run');
  expect(() => readActionForm(fieldsOf('rollback'), {})).toThrow('Step is missing; fill it in');
  expect(readActionForm(fieldsOf('set'), { settings: ' steps=30\n\nlearningRate=1e-5' })).toEqual({
    settings: ['steps=30', 'learningRate=1e-5'],
  });
  expect(readActionForm(fieldsOf('stop'), { now: 'true' })).toEqual({ now: true });
});

const REMOVING = ['checkpoints delete', 'checkpoints prune'];

test('a run in each state has the actions that make sense', () => {
  const named = (state: RunStateName) => actionsFor({ state }, info).map(({ action }) => action);
  expect(named('running')).toEqual(['pause', 'stop', 'set', 'fork', 'evaluate', ...REMOVING, 'rollback']);
  expect(named('paused')).toEqual(['resume', 'stop', 'set', 'fork', 'evaluate', ...REMOVING, 'rollback']);
  expect(named('completed')).toEqual(['fork', 'evaluate', ...REMOVING]);
});

test('an action that cannot be taken says why', () => {
  expect(whyNot('pause', info)).toBeNull();
  expect(whyNot('pause', { ...info, isReadOnly: true })).toContain('--read-only');
  expect(whyNot('pause', { ...info, hasTemporal: false })).toContain('No Temporal server');
  expect(whyNot('replay', { ...info, hasTemporal: false })).toBeNull();
});

test('a recorded prompt is a system prompt, what was said, and the message that waits to be sent', () => {
  const message = (role: string, text: string) => ({ role, text, toolCalls: [], cut: 0 });
  const said = (role: string, content: string) => ({ role, content, note: null, isError: false });
  const prompt = [
    message('system', 'Be short.'),
    message('user', 'a'),
    message('assistant', 'b'),
    message('user', 'c'),
  ];
  expect(splitPrompt(prompt)).toEqual({
    system: 'Be short.',
    said: [said('user', 'a'), said('assistant', 'b')],
    text: 'c',
  });
  expect(splitPrompt(prompt.slice(0, 3)).text).toBe('');
  expect(splitPrompt([])).toEqual({ system: '', said: [], text: '' });
});

test('events of a chat are read whole, however their bytes are cut', async () => {
  const text =
    'data: {"kind":"text","text":"zażółć 🦊"}\n\n: alive\n\ndata: {"kind":"end","finishReason":null,"tokens":3}\n\n';
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (let at = 0; at < bytes.length; at += 3) controller.enqueue(bytes.slice(at, at + 3));
      controller.close();
    },
  });
  const events = [];
  for await (const event of readEvents(body)) events.push(event);
  expect(events).toEqual([
    { kind: 'text', text: 'zażółć 🦊' },
    { kind: 'end', finishReason: null, tokens: 3 },
  ]);
});
