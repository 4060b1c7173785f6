/**
 * What was judged, kept before it is used. A verdict stands under the hash of its question, for all runs of the store;
 * the answers that a run paid for stand beside the group that they were for, so that none is paid for twice.
 */
import { TemperError } from '../../core/failures.ts';
import { decodeJson, encodeJson } from '../../store/json.ts';
import { groupAnswerKey, verdictKey, type GroupPlace } from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';
import type { JudgeAnswer } from './judge-client.ts';
import type { Score } from './parse-verdict.ts';

/** `judgments/<key>.json`. */
export interface Verdict {
  readonly schema: 1;
  readonly judge: string;
  /** By the hash of what was said in an attempt. */
  readonly scores: Readonly<Record<string, Score>>;
}

export interface Verdicts {
  read(key: string): Promise<Verdict | null>;
  /** Of two that were made at once, the first. */
  write(key: string, verdict: Verdict): Promise<Verdict>;
}

/** What was answered to one question, in order, whether it was usable or not. */
export interface Answers {
  read(key: string): Promise<JudgeAnswer[]>;
  write(key: string, number: number, answer: JudgeAnswer): Promise<JudgeAnswer>;
}

export function storedVerdicts(store: Store): Verdicts {
  return {
    async read(key) {
      const bytes = await store.read(verdictKey(key));
      return bytes && parseVerdictFile(bytes, verdictKey(key));
    },
    async write(key, verdict) {
      const { bytes } = await store.publish(verdictKey(key), encodeJson(verdict));
      return parseVerdictFile(bytes, verdictKey(key));
    },
  };
}

interface AnswerFile extends JudgeAnswer {
  schema: 1;
  /** Of the question: another one may have been asked before the agent's rubric was changed. */
  question: string;
}

export function storedAnswers(store: Store, place: GroupPlace): Answers {
  return {
    async read(key) {
      const answers: JudgeAnswer[] = [];
      for (;;) {
        const name = groupAnswerKey(place, key, answers.length);
        const bytes = await store.read(name);
        if (bytes === null) return answers;
        answers.push(decodeJson(bytes, name) as AnswerFile);
      }
    },
    async write(question, number, answer) {
      const name = groupAnswerKey(place, question, number);
      const file: AnswerFile = { schema: 1, question, ...answer };
      const { bytes } = await store.publish(name, encodeJson(file));
      return decodeJson(bytes, name) as AnswerFile;
    },
  };
}

/** For what is not durable. */
export function forgetfulVerdicts(): Verdicts {
  return { read: async () => null, write: async (_key, verdict) => verdict };
}

export function forgetfulAnswers(): Answers {
  return { read: async () => [], write: async (_key, _number, answer) => answer };
}

function parseVerdictFile(bytes: Uint8Array, name: string): Verdict {
  const verdict = decodeJson(bytes, name) as Partial<Verdict> | null;
  if (typeof verdict?.scores === 'object' && Object.values(verdict.scores).every(isScore)) return verdict as Verdict;
  throw new TemperError('StoreCorrupt', `${name} is no verdict; remove it, and the judge is asked again`);
}

function isScore(value: unknown): value is Score {
  const { score, explanation } = (value ?? {}) as Partial<Score>;
  return typeof score === 'number' && score >= 0 && score <= 1 && typeof explanation === 'string';
}
