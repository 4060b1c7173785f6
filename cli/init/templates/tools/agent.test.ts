import { seededRandom } from 'temper-rl';
import { playAgent } from 'temper-rl/testing';
import { expect, test } from 'vitest';
import agent from './agent.ts';
import { makeNotes } from './notes.ts';

const scenario = { id: 'notes-7', seed: 7 };
const { notes, question, answer } = makeNotes(seededRandom(scenario.seed));
const word = question.slice('What is '.length, -1);
const newest = notes.find(({ text }) => text.startsWith(word));

const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });

test('a model that searches, reads the newest note and answers is right', async () => {
  const answers = [call('search', { query: word }), call('read', { id: newest?.id }), `${answer} ${newest?.id}`];
  const { reward, metrics, calls } = await playAgent(agent, { scenario, answers });
  expect(reward).toBe(1);
  expect(metrics).toMatchObject({ correct: true, turns: 3, toolCalls: 2 });
  expect(calls[2]?.request.messages.at(-1)).toMatchObject({ role: 'tool', content: newest?.text });
});

test('a note that does not exist is told to the model, which goes on', async () => {
  const { reward, failure, calls } = await playAgent(agent, { scenario, answers: [call('read', { id: 99 }), 'KEL 1'] });
  expect([reward, failure]).toEqual([0, null]);
  expect(calls[1]?.request.messages.at(-1)?.content).toBe('Error: there is no note 99');
});
