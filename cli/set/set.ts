import { describeChange, SETTINGS } from '../../core/settings.ts';
import type { Command } from '../command-line/command.ts';
import { stringFlag } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';

export const set: Command = {
  name: 'set',
  summary: 'change settings of a running run, starting with its next step',
  usage: 'set RUN KEY=VALUE… [--reason TEXT]',
  details: [
    `KEY is one of ${SETTINGS.join(', ')}, or the name of its flag.`,
    'Raise max-judge-usd to continue a run that paused because its judge reached the budget.',
    'A setting holds until you set it again, also across a rollback. The current step finishes as planned.',
  ],
  examples: ['temper set demo learningRate=1e-5', 'temper set demo steps=300 evalEvery=50 --reason "it still learns"'],
  positionals: ['RUN', 'KEY=VALUE'],
  repeats: true,
  options: { reason: { type: 'string', placeholder: 'TEXT', description: 'recorded with the run' } },
  async run({ flags, positionals, project, env, output }) {
    const { parseSettings } = await import('./settings.ts');
    const [run = '', ...texts] = positionals;
    const settings = parseSettings(texts, { prefix: '', help: 'temper set --help' });
    const { steerRun } = await import('../connections/steer.ts');
    const { setUpdate } = await import('../../workflows/messages.ts');
    const { changes } = await steerRun(project, env, run, (handle) =>
      handle.executeUpdate(setUpdate, { args: [{ settings, reason: stringFlag(flags, 'reason') }] }),
    );
    for (const change of changes) output.line(`${run}: ${describeChange(change)}`);
    if (changes.length === 0) output.line(`${run} has ${texts.join(' ')} already`);
    return EXIT.ok;
  },
};
