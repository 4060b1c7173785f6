/** Options whose effect takes a server or a player to see: the test that shows it, by its file and its exact title. */
import { readFileSync } from 'node:fs';

export interface ShownByTest {
  readonly file: string;
  readonly title: string;
}

/** `file` is relative to this folder. */
export function byTest(file: string, title: string): ShownByTest {
  return { file, title };
}

/** The text of the test, up to the next one; throws if no test has this title. */
export function textOf({ file, title }: ShownByTest): string {
  const tests = readFileSync(new URL(file, import.meta.url), 'utf8').split(/^(?= *(?:test|it)\b)/m);
  const found = tests.find((text) => /^\s*(?:test|it)\b[^'"`]*(['"`])(.*?)\1,/s.exec(text)?.[2] === title);
  if (found === undefined) throw new Error(`test/${file} has no test ${JSON.stringify(title)}`);
  return found;
}
