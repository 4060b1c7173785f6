/** Tools as agents write them: what the model is shown, what arguments are, how results look. */
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';

import { tool } from '../../sdk/index.ts';
import { contents, search, Stage } from './scripted.ts';

const stage = new Stage();

test('the model is shown the schema of a zod object, and a JSON schema as it is', async () => {
  const read = tool({ name: 'read', parameters: { type: 'object', properties: { id: {} } }, run: () => 'text' });
  const list = tool({ name: 'list', run: () => [] });
  await stage.play(['Done.'], [search, read, list]);
  expect(stage.asked()[0]?.tools).toEqual([
    {
      type: 'function',
      function: {
        name: 'search',
        description: 'Finds mails.',
        parameters: {
          type: 'object',
          properties: { query: { type: 'string' }, limit: expect.objectContaining({ type: 'integer' }) },
          required: ['query'],
        },
      },
    },
    { type: 'function', function: { name: 'read', parameters: { type: 'object', properties: { id: {} } } } },
    { type: 'function', function: { name: 'list', parameters: { type: 'object', properties: {} } } },
  ]);
});

test('arguments have the type of their schema', () => {
  tool({
    name: 'typed',
    parameters: z.object({ when: z.iso.date().transform((day) => new Date(day)) }),
    run: (args) => expectTypeOf(args).toEqualTypeOf<{ when: Date }>(),
  });
  tool({ name: 'free', parameters: { type: 'object' }, run: (args) => expectTypeOf(args).toBeObject() });
});

test.each([
  ['text as it is', 'a "quoted" mail', 'a "quoted" mail'],
  ['anything else as JSON', { id: 7, tags: ['x'] }, '{"id":7,"tags":["x"]}'],
  ['nothing as ok', undefined, 'ok'],
])('a result goes back: %s', async (_, value, content) => {
  const played = await stage.play([[['get', {}]], 'Done.'], [tool({ name: 'get', run: () => value })]);
  expect(contents(played)[2]).toBe(content);
});

test.each([['two words'], [''], ['ü'], ['x'.repeat(65)]])('the name %j is no tool’s', (name) => {
  expect(() => tool({ name, run: () => 1 })).toThrow('name of tool must be text that matches');
});
