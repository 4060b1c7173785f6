/**
 * A judge's answer, read strictly: it is JSON as a whole, and names each attempt once, by the exact name that only the
 * prompt's delimiters carry. What an attempt shows of scores can therefore never be taken for the judge's.
 */
import type { Score } from '../../store/records/verdicts.ts';
import { parseJsonAnswer } from '../hosted/json-answer.ts';

/** The text for asking a judge again; it quotes nothing of its answer. */
export interface Unusable {
  readonly complaint: string;
}

const MAX_EXPLANATION = 2000;
export function parseVerdict(text: string, names: readonly string[]): ReadonlyMap<string, Score> | Unusable {
  const entries = parseEntries(text);
  if (entries === null) return { complaint: 'it was not JSON of the form {"scores":[…]} and nothing else' };
  const scores = new Map<string, Score>();
  for (const entry of entries) {
    const { id, score, explanation } = (entry ?? {}) as { id?: unknown; score?: unknown; explanation?: unknown };
    if (typeof id !== 'string' || !names.includes(id))
      return { complaint: `an id must be exactly one of ${names.join(', ')}` };
    if (scores.has(id)) return { complaint: `${id} must be scored once, it was scored twice` };
    if (typeof score !== 'number' || !(score >= 0 && score <= 1))
      return { complaint: `the score of ${id} must be a number from 0 to 1` };
    if (typeof explanation !== 'string') return { complaint: `the explanation of ${id} must be text` };
    scores.set(id, { score, explanation: explanation.slice(0, MAX_EXPLANATION) });
  }
  const missing = names.filter((name) => !scores.has(name));
  return missing.length === 0 ? scores : { complaint: `it must score ${missing.join(', ')} as well` };
}

export function isUnusable(result: ReadonlyMap<string, Score> | Unusable): result is Unusable {
  return 'complaint' in result;
}

function parseEntries(text: string): unknown[] | null {
  const body = parseJsonAnswer(text) as { scores?: unknown } | null | undefined;
  return Array.isArray(body?.scores) ? (body.scores as unknown[]) : null;
}
