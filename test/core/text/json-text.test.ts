import { expect, test } from 'vitest';

import { compactJson, membersOf, partsOf, wellFormed, wellFormedJson } from '../../../core/text/json-text.ts';
import { deriveSeed } from '../../../core/numbers/seeds.ts';

/** Any JSON, with blanks, escapes and numbers as people and programs write them. */
class Writer {
  readonly numbers: string[] = [];
  #drawn = 0;
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  value(depth: number): string {
    const kind = this.#draw(depth === 0 ? 4 : 6);
    if (kind === 0) return this.#number();
    if (kind === 1) return this.#pick(['true', 'false', 'null']);
    if (kind < 4) return this.#string();
    const parts = Array.from({ length: this.#draw(4) }, (_, index) =>
      kind === 4
        ? this.value(depth - 1)
        : `"${index}${this.#draw(9)}"${this.#blank()}:${this.#blank()}${this.value(depth - 1)}`,
    );
    const inner = parts.join(`${this.#blank()},${this.#blank()}`);
    return kind === 4 ? `[${this.#blank()}${inner}]` : `{${inner}${this.#blank()}}`;
  }

  #number(): string {
    const digits = this.#pick([
      '0',
      '7',
      '1.0',
      '0.10',
      '9007199254740993',
      '123456789012345678901234567890',
      '5e-7',
      '1E+5',
    ]);
    this.numbers.push(this.#pick(['', '-']) + digits);
    return this.numbers.at(-1)!;
  }

  #string(): string {
    return this.#pick([
      '""',
      '"a, [b] {c}"',
      String.raw`"\"quoted\\"`,
      String.raw`"\u00e9\n"`,
      '"1.0"',
      '"\u2028"',
      '"🙂"',
    ]);
  }

  #blank(): string {
    return this.#pick(['', '', ' ', '\t ', '\r\n']);
  }

  #pick(choices: readonly string[]): string {
    return choices[this.#draw(choices.length)]!;
  }

  #draw(count: number): number {
    return deriveSeed([this.#seed, 'json', this.#drawn++]) % count;
  }
}

test('any JSON keeps its value, its order and the digits of its numbers', () => {
  for (let seed = 0; seed < 300; seed++) {
    const writer = new Writer(seed);
    const text = writer.value(4);
    const compact = compactJson(text);
    expect(JSON.parse(compact)).toEqual(JSON.parse(text));
    expect(compactJson(compact)).toBe(compact);
    const numbers = compact.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d[\d.eE+-]*/g) ?? [];
    expect(numbers).toEqual(writer.numbers);
    if (compact.startsWith('[')) expect(`[${partsOf(compact).join(',')}]`).toBe(compact);
    if (!compact.startsWith('{')) continue;
    expect(
      `{${membersOf(compact)
        .map(([name, value]) => `"${name}":${value}`)
        .join(',')}}`,
    ).toBe(compact);
  }
});

test('any text stays the same, or is made one that all readers take', () => {
  for (let seed = 0; seed < 300; seed++) {
    const units = Array.from({ length: 12 }, (_, index) => {
      const drawn = deriveSeed([seed, 'unit', index]);
      return [0xd83c, 0xdf19, 0x5c, 0x75, 0x64, 0x38, 0x22, 0xa][drawn % 8]!;
    });
    const text = String.fromCharCode(...units);
    const value = { [text]: [text, { n: 1, none: undefined }] };
    expect(JSON.parse(wellFormedJson(JSON.stringify(text)))).toBe(text.toWellFormed());
    if (text.isWellFormed()) expect(wellFormed(value)).toBe(value);
    else expect(wellFormed(value)).toEqual({ [text.toWellFormed()]: [text.toWellFormed(), { n: 1 }] });
  }
});

test('half of a surrogate pair and a name that stands twice are refused', () => {
  expect(() => compactJson(String.raw`{"a": "x\ud83c"}`)).toThrow(String.raw`"x\ud83c" holds half of a surrogate pair`);
  expect(() => membersOf('{"a":1,"a":2}')).toThrow('"a" stands twice');
});

test('a string may be as long as a file is', () => {
  const json = JSON.stringify({ a: 'x'.repeat(9 * 1024 ** 2), 'b"\\': '\\'.repeat(1001), c: [1] });
  expect(compactJson(` ${json}\n`)).toBe(json);
  expect(membersOf(json).map(([name, value]) => [name, value.length])).toEqual([
    ['a', 9 * 1024 ** 2 + 2],
    ['b"\\', 2004],
    ['c', 3],
  ]);
});
