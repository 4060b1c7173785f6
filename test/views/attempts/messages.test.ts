import { expect, test } from 'vitest';
import { messageText } from '../../../views/api/message-text.ts';
import { viewMessage } from '../../../views/attempts/messages.ts';

const call = (name: string, args: string) => ({ id: '0', type: 'function', function: { name, arguments: args } });

test('calls of tools are shown as they were written, and one in a form of its own as its JSON', () => {
  const own = { type: 'custom', custom: { input: 'ls' } };
  const message = { role: 'assistant', content: 'Now.', tool_calls: [call('search', '{"q": 1'), own] };
  const view = viewMessage(message);
  expect(view.toolCalls).toEqual([
    { name: 'search', arguments: '{"q": 1' },
    { name: '', arguments: JSON.stringify(own) },
  ]);
  expect(messageText(view)).toBe(`Now.\nsearch({"q": 1)\n${JSON.stringify(own)}`);
});

test('parts of a text are one text, and what is no text is its JSON', () => {
  const content = [
    { type: 'text', text: '<b>one</b>' },
    { type: 'image_url', image_url: { url: 'x' } },
  ];
  expect(viewMessage({ role: 'user', content }).text).toBe(`<b>one</b>\n${JSON.stringify(content[1], null, 1)}`);
});

test('of a long message the beginning is shown, and how much of text and calls is missing', () => {
  const message = { role: 'assistant', content: 'x'.repeat(12), tool_calls: [call('search', 'y'.repeat(15))] };
  expect(viewMessage(message, 10)).toEqual({
    role: 'assistant',
    text: 'x'.repeat(10),
    toolCalls: [{ name: 'search', arguments: 'y'.repeat(10) }],
    cut: 7,
  });
});
