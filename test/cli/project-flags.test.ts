import { expect, test } from 'vitest';
import { trainCommand } from '../../cli/train/command.ts';
import { flagText } from '../../cli/planning/project-flags.ts';
import { defineConfig } from '../../workers/config/config.ts';
import { contextOf } from './run-cli.ts';

test('train gives flags to every run, a command line wins, and what is no flag of a run is refused', () => {
  const train = { 'base-model': 'pocket', steps: 60, 'learning-rate': 1e-3, 'lora-target-modules': ['q', 'v'] };
  const words = flagText(defineConfig({ train }));
  const { flags } = contextOf(trainCommand, '/', [...words, 'agent.ts', '--steps', '5']);
  const read = { 'base-model': 'pocket', steps: 5, 'learning-rate': 1e-3, 'lora-target-modules': ['q', 'v'] };
  expect(flags).toMatchObject(read);
  const refused = (input: Record<string, boolean | string>) => () => flagText(defineConfig({ train: input }));
  expect(refused({ stepz: '5' })).toThrow(/train\["stepz"\] of temporal\.config\.ts is no flag .*did you mean steps\?/);
  expect(refused({ steps: true })).toThrow(/train\["steps"\] of temporal\.config\.ts must be N, got true/);
});
