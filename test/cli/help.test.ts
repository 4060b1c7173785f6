/** Help of each command says all that its definition says, and what it shows can be typed. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { glossaryLine, helpOf } from '../../cli/command-line/help.ts';
import { parseCommandLine } from '../../cli/command-line/parse.ts';
import { listCommands } from '../../cli/commands.ts';
import { findCommand } from '../../cli/main.ts';
import { runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const COMMANDS = await listCommands();
const ALL = COMMANDS.flatMap((command) => [command, ...(command.actions ?? [])]);
/** With all flags. */
const help = (name: string) =>
  helpOf(
    ALL.find((command) => command.name === name)!,
    true,
  );

test('help of a command: what it does, its usage, details, flags and examples', () => {
  expect(help('rollback')).toMatchInlineSnapshot(`
    "go back to a finished step and train the following steps again, on a new branch

    Usage: temper rollback RUN --step N [--set KEY=VALUE]… [--reason TEXT] [--json]

    A running run drops its current step; an ended run is started again. Nothing is overwritten or deleted: the steps
    after N stay on their branch, and the steps on the new branch use other seeds.

    Options:
      --step N         the last step to keep
      --set KEY=VALUE  also change a setting, as temper set does; repeatable
      --reason TEXT    recorded with the run
      --json           print one JSON object
      -h, --help       print this help

    Examples:
      temper rollback demo --step 40
      temper rollback demo --step 40 --set learningRate=1e-5"
  `);
});

test('temper --help has a line for each command, below one of its headings', async () => {
  const { stdout } = await runCli(temporaryFolder(), ['--help']);
  const listed = stdout.split('\n').flatMap((line) => /^  ([a-z-]+) +[a-z]/.exec(line)?.[1] ?? []);
  expect(listed.toSorted()).toEqual(COMMANDS.map(({ name }) => name).toSorted());
});

describe.each(ALL)('temper $name', ({ name, summary, details = [], examples = [], flags }) => {
  test('--help and temper help print its help and where the glossary is, without its arguments', async () => {
    const folder = temporaryFolder();
    const words = name.split(' ');
    const asked = await runCli(folder, [...words, '--help', 'all']);
    expect(asked).toEqual({ exitCode: 0, stdout: `${help(name)}\n\n${glossaryLine(folder)}`, stderr: '' });
    const short = await runCli(folder, [...words, '--help']);
    expect(await runCli(folder, ['help', ...words])).toEqual(short);
    expect(short.stdout.split('\n').length).toBeLessThanOrEqual(70);
  });

  test('says in a line what it does and how it is used, then its details', () => {
    const lines = help(name).split('\n');
    expect(lines[0]).toBe(summary);
    expect(summary).toMatch(/^[a-z].{10,95}[^.]$/);
    expect(lines[2]).toMatch(new RegExp(`^Usage: temper ${name}( |$)`));
    expect(lines).toEqual(expect.arrayContaining([...details]));
  });

  test('has a line for each flag, with its meaning and its default', () => {
    const lines = help(name)
      .replaceAll(/\n {10,}(?=\S)/g, ' ')
      .split('\n');
    for (const [flag, { description, default: usual = '' }] of Object.entries(flags)) {
      const line = lines.find((each) => new RegExp(String.raw`^  --(\[no-\])?${flag} `).test(each)) ?? '';
      expect(description, flag).not.toBe('');
      expect(line, flag).toContain(`  ${description}`);
      expect(line, flag).toContain('required' in flags[flag]! ? '' : usual);
    }
  });

  test.skipIf(examples.length === 0).each(examples)('would do what its example says: %s', async (example) => {
    const [, ...words] = [...example.matchAll(/"[^"]*"|'[^']*'|\S+/g)].map(([word]) =>
      word.replaceAll(/^["']|["']$/g, ''),
    );
    const { command, args } = await findCommand(words[0]!, words.slice(1));
    expect(command.name.split(' ')[0]).toBe(name.split(' ')[0]);
    expect(() => parseCommandLine(command, args)).not.toThrow();
  });
});

test('a command with many flags shows those that most people need, under the headings of docs/commands.md', async () => {
  const { stdout } = await runCli(temporaryFolder(), ['train', '--help']);
  const flags = [...stdout.matchAll(/^ {2}--(?:\[no-\])?([\w-]+)/gm)].map(([, flag]) => flag);
  expect(flags).toEqual(expect.arrayContaining(['base-model', 'steps', 'group-size', 'learning-rate', 'temperature']));
  expect(flags.length).toBeGreaterThan(15);
  expect(flags.length).toBeLessThan(25);
  const all = Object.keys(ALL.find(({ name }) => name === 'train')!.flags).length;
  expect(stdout).toContain(`These are ${flags.length} of ${all} flags. All of them: temper train --help all`);
  const page = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8');
  const headings = [...help('train').matchAll(/^([A-Z].*):$/gm)].map(([, heading]) => heading!);
  const own = ['Recorded conversations', 'Trackers and traces', 'Options', 'Examples'];
  for (const heading of headings.filter((each) => !own.includes(each))) expect(page).toContain(`\n### ${heading}\n`);
  const [options = ''] = help('train').split('\nExamples:');
  const rows = options.split('\n').filter((line) => line.startsWith('  '));
  expect(Math.max(...rows.map((line) => line.length))).toBeLessThanOrEqual(110);
});

test('a command with many flags shows an example', () => {
  const without = ALL.filter(({ examples = [], flags }) => examples.length === 0 && Object.keys(flags).length > 2);
  expect(without.map(({ name }) => name)).toEqual(['dev']);
});

test('temper alone lists every command with its summary', async () => {
  const folder = temporaryFolder();
  const { exitCode, stdout } = await runCli(folder, []);
  expect(exitCode).toBe(0);
  expect(stdout.split('\n').at(-1)).toBe(glossaryLine(folder));
  const rows = stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
  for (const { name, summary } of COMMANDS) expect(rows).toContainEqual([name, summary]);
  expect(stdout).toContain('See temper COMMAND --help. Exit codes: 0 done, 1 failed, 2 wrong input.');
});

test('help for a command that does not exist says which is meant', async () => {
  const { exitCode, stderr } = await runCli(temporaryFolder(), ['help', 'trian']);
  expect([exitCode, stderr]).toEqual([2, 'temper: unknown command trian; did you mean temper train?']);
});
