/** Options whose effect takes a server or a player to see: the test that shows it, by its file and its exact title. */
import { readFileSync } from 'node:fs';

export interface ShownByTest {
  readonly file: string;
  readonly title: string;
}

/** Two ways of giving a command its arguments. Planned, or else run; what comes of them must differ. */
export type Probe = readonly [without: string, given: string] | ShownByTest;

/** `file` is relative to this folder. */
export function byTest(file: string, title: string): ShownByTest {
  return { file, title };
}

/** One test for several flags, under each of the commands. */
export function shownBy(
  proof: ShownByTest,
  commands: readonly string[],
  flags: readonly string[],
): Record<string, ShownByTest> {
  return Object.fromEntries(commands.flatMap((command) => flags.map((flag) => [`${command} --${flag}`, proof])));
}

/** The text of the test, up to the next one; throws if no test has this title. */
export function textOf({ file, title }: ShownByTest): string {
  const tests = readFileSync(new URL(file, import.meta.url), 'utf8').split(/^(?= *(?:test|it)\b)/m);
  const found = tests.find((text) => /^\s*(?:test|it)\b[^'"`]*(['"`])(.*?)\1,/s.exec(text)?.[2] === title);
  if (found === undefined) throw new Error(`test/${file} has no test ${JSON.stringify(title)}`);
  return found;
}
