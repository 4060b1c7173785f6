import { expect, test } from 'vitest';

import { scheduleCreateCommand } from '../../cli/schedule/command.ts';
import { planSchedule } from '../../cli/schedule/plan-schedule.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { contextOf } from './run-cli.ts';

async function timingOf(...words: string[]) {
  const project = temporaryProject();
  const agent = await writeAgent(project);
  const line = [agent, '--name', 'nightly', '--base-model', 'pocket', ...words];
  return (await planSchedule(contextOf(scheduleCreateCommand, project, line))).timing;
}

test.each([
  ['30m', 1_800_000],
  ['6h', 21_600_000],
  ['1d', 86_400_000],
  ['2w', 1_209_600_000],
])('the interval %s', async (text, everyMs) => {
  expect(await timingOf('--every', text)).toEqual({ text: `every ${text}`, everyMs, cron: null });
});

test.each(['', '1', 'd', '0d', '-1d', '1.5h', '10s', '1 d', '1day', '1D', '1234567m'])(
  'the interval %j is refused with what to write',
  async (text) => {
    await expect(timingOf(`--every=${text}`)).rejects.toThrow(`got ${JSON.stringify(text)}; pass --every 6h`);
  },
);
