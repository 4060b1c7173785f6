/** The difference of two requests for messages: the member, and the first characters that differ. */
import { canonicalJson } from '../../core/text/hashes.ts';

export interface Difference {
  /** `messages[2].content` */
  readonly path: string;
  readonly recorded: unknown;
  readonly asked: unknown;
}

/** In the order of the recorded request; equal requests have none. */
export function differencesOf(recorded: unknown, asked: unknown, path = ''): Difference[] {
  if (isSame(recorded, asked)) return [];
  if (Array.isArray(recorded) && Array.isArray(asked)) {
    const length = Math.max(recorded.length, asked.length);
    return Array.from({ length }, (_, index) =>
      differencesOf(recorded[index], asked[index], `${path}[${index}]`),
    ).flat();
  }
  if (isObject(recorded) && isObject(asked)) {
    const names = new Set([...Object.keys(recorded), ...Object.keys(asked)]);
    return [...names].flatMap((name) =>
      differencesOf(recorded[name], asked[name], path === '' ? name : `${path}.${name}`),
    );
  }
  return [{ path, recorded, asked }];
}

/** Two lines below the place: what was recorded, what is asked now. */
export function describeDifference({ path, recorded, asked }: Difference): string {
  if (typeof recorded === 'string' && typeof asked === 'string') {
    const at = firstDifference(recorded, asked);
    return `${path}, character ${at + 1}\n  recorded: ${excerpt(recorded, at)}\n  now:      ${excerpt(asked, at)}`;
  }
  return `${path}\n  recorded: ${shown(recorded)}\n  now:      ${shown(asked)}`;
}

const BEFORE = 30;
const AFTER = 50;
const LONGEST = 200;

function firstDifference(left: string, right: string): number {
  let at = 0;
  while (at < left.length && left[at] === right[at]) at += 1;
  return at;
}

function excerpt(text: string, at: number): string {
  const start = Math.max(0, at - BEFORE);
  const end = Math.min(text.length, at + AFTER);
  const part = JSON.stringify(text.slice(start, end));
  return `${start > 0 ? '…' : ''}${part}${end < text.length ? '…' : ''}`;
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}

function isSame(left: unknown, right: unknown): boolean {
  if (left === undefined || right === undefined) return left === right;
  return canonicalJson(left) === canonicalJson(right);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
