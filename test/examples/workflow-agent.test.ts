/** The parts of the example that need no SDK: what its tools say, and whom its reviewer believes. */
import { expect, test } from 'vitest';

import { read, search } from '../../examples/workflow-agent/activities.ts';
import { makeMailbox } from '../../examples/workflow-agent/mailbox.ts';
import { approves } from '../../examples/workflow-agent/reviewer.ts';

const mailbox = 7;

test('the reviewer approves of what the newest mail says, and of nothing else', async () => {
  const word = /^What is (\w+)\?$/.exec(makeMailbox(mailbox).question)![1]!;
  const ids = JSON.parse(await search({ mailbox, query: word })) as number[];
  const told = await Promise.all(ids.map((id) => read({ mailbox, id })));
  const words = told.map((text) => text.replace(`${word} is `, '').replace('.', ''));
  expect(words.map((each) => approves(mailbox, each))).toEqual([true, false, false]);
  expect(approves(mailbox, `${words[0]} ${ids[0]}`)).toBe(true);
  expect(approves(mailbox, `It is ${words[0]}.`)).toBe(false);
  expect(approves(mailbox, null)).toBe(false);
});
