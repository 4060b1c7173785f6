/** Commands as data: what follows from a definition, and that a definition costs nothing. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { type Arguments, type Definition, type Flags, RUN_ARGUMENT } from '../../operations/flags.ts';
import { defineCommand } from '../../cli/command-line/command.ts';
import { helpOf, usageOf } from '../../cli/command-line/help.ts';
import { parseCommandLine } from '../../cli/command-line/parse.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const N = { placeholder: 'N', description: '' };
/** A command that does nothing. */
const define = <const F extends Flags, const A extends Arguments>(definition: Definition<F, A>) =>
  defineCommand({ ...definition, run: () => Promise.resolve(0) });

const command = define({
  name: 'play',
  summary: '',
  arguments: {
    run: RUN_ARGUMENT,
    action: { placeholder: 'ACTION', choices: ['push', 'pull'], optional: true },
  },
  flags: {
    steps: { kind: 'integer', minimum: 1, maximum: 9, ...N },
    step: { kind: 'integer', required: 'pass --step N', ...N },
    rate: { kind: 'number', maximum: 2, ...N },
    port: { kind: 'port', ...N },
    name: { kind: 'text', form: { pattern: /^[a-z]+$/, rule: 'lower case letters', example: 'demo' }, ...N },
    type: { kind: 'choice', choices: ['auto', 'float32'], ...N },
    tags: { kind: 'list', ...N },
    extra: { kind: 'json', ...N },
    agent: { kind: 'texts', ...N },
    json: { kind: 'boolean', description: '' },
  },
});

function parse(words: string) {
  const line = parseCommandLine(command, words.split(' '));
  if (line.isHelp) throw new Error('no help was asked for');
  return line;
}

const GIVEN =
  'demo push --step 3 --rate -0.5 --port 80 --name x --type auto --tags a,b --extra {"a":1} --agent p --agent q';

test('flags and arguments have the values and the types of their definition', () => {
  const { flags, args } = parse(`${GIVEN} --json`);
  expect(args).toEqual({ run: 'demo', action: 'push' });
  const texts = { name: 'x', type: 'auto', tags: ['a', 'b'], extra: { a: 1 }, agent: ['p', 'q'] };
  expect(flags).toEqual({ steps: null, step: 3, rate: -0.5, port: 80, ...texts, json: true });
  expectTypeOf(args).toEqualTypeOf<{
    readonly run: string;
    readonly action: 'push' | 'pull' | null;
  }>();
  expectTypeOf(flags).toEqualTypeOf<{
    readonly steps: number | null;
    readonly step: number;
    readonly rate: number | null;
    readonly port: number | null;
    readonly name: string | null;
    readonly type: 'auto' | 'float32' | null;
    readonly tags: readonly string[] | null;
    readonly extra: object | null;
    readonly agent: readonly string[];
    readonly json: boolean;
  }>();
});

test('a flag may be given by its other name, which help tells', () => {
  const file = define({ ...command, flags: { file: { kind: 'texts', also: 'path', ...N } } });
  const line = parseCommandLine(file, ['demo', '--path', 'a', '--file', 'b', '--path=c']);
  expect(line).toMatchObject({ flags: { file: ['a', 'b', 'c'] } });
  expect(() => parseCommandLine(file, ['demo', '--path'])).toThrow('--path needs a value; write --path N');
  expect(() => parseCommandLine(file, ['demo', '--pahts', 'a'])).toThrow('did you mean --path?');
  expect(helpOf(file)).toMatch(/^ {2}--file N {5}\(also --path\)$/m);
});

test('what is not given is null, false or empty', () => {
  const { flags, args } = parse('demo --step 3');
  expect(args.action).toBeNull();
  const none = { steps: null, rate: null, port: null, name: null, type: null, tags: null, extra: null };
  expect(flags).toEqual({ ...none, step: 3, agent: [], json: false });
});

test.each([
  ['demo', '--step is missing; pass --step N'],
  ['demo --step 1.5', '--step must be a whole number, got "1.5"; pass --step N'],
  ['demo --step 1 --steps 0', '--steps must be a whole number from 1 to 9, got "0"; pass --steps N'],
  ['demo --step 1 --rate 3', '--rate must be a number of at most 2, got "3"; pass --rate N'],
  ['demo --step 1 --port 0', '--port must be a port from 1 to 65535, got "0"; pass --port N'],
  ['demo --step 1 --name X', '--name must be lower case letters, got "X"; pass --name demo'],
  ['demo --step 1 --type int', '--type must be one of auto, float32, got "int"; pass --type auto'],
  ['--step 1', 'RUN is missing; usage: temper play RUN [ACTION] --step N [flags]'],
  ['demo pull x --step 1', 'unexpected argument "x"; usage: temper play RUN [ACTION] --step N [flags]'],
  ['demo puhs --step 1', 'ACTION must be one of push, pull, got "puhs"; did you mean push?'],
])('%s is refused by its kind', (words, message) => {
  expect(() => parse(words)).toThrow(message);
});

describe('rules between flags', () => {
  const rules = define({
    name: 'write',
    summary: '',
    arguments: {},
    flags: {
      format: { kind: 'choice', choices: ['peft', 'gguf'], ...N },
      quantize: { kind: 'text', needs: ['format gguf', 'elsewhere'], ...N, description: 'how' },
      all: { kind: 'boolean', description: '', negatable: true },
      step: { kind: 'texts', excludes: ['all', 'elsewhere'], ...N, description: 'which' },
    },
  });

  test.each([
    ['--quantize x', '--quantize has no effect without --format gguf; pass both, or leave it out'],
    ['--format peft --quantize x', '--quantize has no effect without --format gguf; pass both, or leave it out'],
    ['--all --step 1', '--step and --all exclude each other; leave one of them out'],
  ])('%s is refused', (words, message) => {
    expect(() => parseCommandLine(rules, words.split(' '))).toThrow(message);
  });

  test.each(['--format gguf --quantize x', '--all', '--no-all --step 1', '--all --no-all --step 1'])('%s', (words) => {
    expect(parseCommandLine(rules, words.split(' ')).isHelp).toBe(false);
  });

  test('help shows them', () => {
    expect(helpOf(rules)).toContain('  --quantize N  how (with --format gguf or --elsewhere)');
    expect(helpOf(rules)).toContain('  --step N      which (not with --all or --elsewhere)');
  });
});

test('an argument that repeats is a list', () => {
  const set = define({
    ...command,
    arguments: { run: RUN_ARGUMENT, settings: { placeholder: 'KEY=VALUE', repeats: true } },
    flags: {},
  });
  const line = parseCommandLine(set, ['demo', 'a=1', 'b=2']);
  expect(line).toEqual({ isHelp: false, flags: {}, args: { run: 'demo', settings: ['a=1', 'b=2'] } });
  expect(usageOf(set)).toBe('play RUN KEY=VALUE…');
});

test('a few flags are named in the usage, more are not', () => {
  const { step, agent, json } = command.flags;
  expect(usageOf({ ...command, flags: { json, step, agent } })).toBe(
    'play RUN [ACTION] --step N [--json] [--agent N]…',
  );
});

describe('before a command runs', () => {
  const ROOT = fileURLToPath(new URL('../..', import.meta.url));
  /** `import …` and `export … from`, without those of types alone and without `import('…')`. */
  const IMPORT = /^(?:import|export)\s+(?!type\b)[^;]*?from '([^']+)'/gm;

  /** The libraries that are loaded with a file. */
  function librariesOf(file: string, seen = new Set<string>()): string[] {
    if (seen.has(file)) return [];
    seen.add(file);
    const specifiers = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, specifier = '']) => specifier);
    return specifiers.flatMap((specifier) =>
      specifier.startsWith('.') ? librariesOf(join(dirname(file), specifier), seen) : specifier,
    );
  }

  test('no library is loaded, only what Node has', () => {
    const definitions = readdirSync(join(ROOT, 'cli')).map((name) => `cli/${name}/command.ts`);
    const files = [...definitions.filter((file) => existsSync(join(ROOT, file))), 'operations/index.ts', 'cli/main.ts'];
    expect(files.length).toBeGreaterThan(20);
    for (const file of files)
      expect(
        librariesOf(join(ROOT, file)).filter((name) => !name.startsWith('node:')),
        file,
      ).toEqual([]);
    expect(librariesOf(join(ROOT, 'cli/train/train.ts'))).toContain('zod');
  });

  /** Files that a process loaded, relative to the clone, by the coverage that Node writes. */
  async function loadedBy(...line: string[]): Promise<string[]> {
    const folder = temporaryFolder();
    const env = { ...process.env, NODE_V8_COVERAGE: folder };
    expect(spawnSync(process.execPath, [join(ROOT, 'cli/temper.js'), ...line], { env }).status).toBe(0);
    const reports = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const urls = reports.flatMap((report) => (JSON.parse(report) as { result: { url: string }[] }).result);
    const files = urls
      .filter(({ url }) => url.startsWith('file:'))
      .map(({ url }) => relative(ROOT, fileURLToPath(url)));
    return [...new Set(files)].toSorted();
  }

  test.each([
    ['--help', []],
    ['train --help', ['cli/train/command.ts']],
  ])('temper %s loads no other definition, and no library', async (line, definitions) => {
    const loaded = await loadedBy(...line.split(' '));
    const packages = loaded.flatMap((file) => /^node_modules\/([^/]+)/.exec(file)?.[1] ?? []);
    // The sources of a clone are compiled while they load.
    expect([...new Set(packages)]).toEqual(['esbuild', 'tsx']);
    expect(loaded.filter((file) => /^(cli\/(?!command-line)[\w-]+\/command|operations\/\w+)\.ts$/.test(file))).toEqual([
      ...definitions,
      'operations/flags.ts',
    ]);
    // A file more costs each call a millisecond.
    expect(loaded.filter((file) => !file.startsWith('node_modules/')).length).toBeLessThan(30);
  });
});
