import { expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { temporaryFolder } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

test.each(COMMANDS.flatMap(({ name, actions = [] }) => [name, ...actions.map((action) => action.name)]))(
  'temper help %s is its --help',
  async (name) => {
    const folder = await temporaryFolder();
    const words = name.split(' ');
    const asked = await runCli(folder, ['help', ...words]);
    expect(asked).toEqual(await runCli(folder, [...words, '--help']));
    expect(asked.stdout).toContain(`Usage: temper ${name}`);
  },
);

test('help for a command that does not exist says which is meant', async () => {
  const { exitCode, stderr } = await runCli(await temporaryFolder(), ['help', 'trian']);
  expect([exitCode, stderr]).toEqual([2, 'temper: unknown command trian; did you mean temper train?']);
});
