/**
 * Verdicts of judges, stored before use. A verdict has its question's hash as key, for all runs of the store; the
 * answers that a run paid for are beside the group that they were for, so that none is paid for twice.
 */
import { type JudgeAnswerFile, type JudgeQuestionFile, Verdict } from '../../../core/contract/records.ts';
import type { JudgeSpending } from '../../../core/contract/contract.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { spendingOf } from '../../../core/rules/judge-spending.ts';
import { childNames } from '../children.ts';
import { AnswerFileSchema, publishStored, QuestionFileSchema, readStored, tolerant } from '../file-schemas.ts';
import { Ledger } from '../ledger.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { decodeJson, encodeJson } from '../../bytes/json.ts';
import * as layout from '../../layout.ts';
import type { GroupPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';

export type { Verdict };
const VerdictSchema = tolerant(Verdict);

export type JudgeAnswer = Omit<JudgeAnswerFile, 'schema' | 'question' | 'complaint'>;
export type Score = Verdict['scores'][string];

export interface Verdicts {
  read(key: string): Promise<Verdict | null>;
  /** A second writer gets the first one's verdict. */
  write(key: string, verdict: Verdict): Promise<Verdict>;
}

/** Answers to one question, in order, usable or not. */
export interface Answers {
  read(key: string): Promise<JudgeAnswer[]>;
  write(key: string, number: number, answer: JudgeAnswer & Pick<JudgeAnswerFile, 'complaint'>): Promise<JudgeAnswer>;
  /** Keeps what makes the prompt from the attempts; before an answer is written, and if the verdict is known. */
  keepQuestion(key: string, question: Omit<JudgeQuestionFile, 'schema'>): Promise<void>;
}

export function storedVerdicts(store: Store): Verdicts {
  return {
    async read(key) {
      const bytes = await store.read(layout.verdictKey(key));
      return bytes && parseVerdictFile(bytes, layout.verdictKey(key));
    },
    async write(key, verdict) {
      const { bytes } = await store.publish(layout.verdictKey(key), encodeJson(verdict));
      return parseVerdictFile(bytes, layout.verdictKey(key));
    },
  };
}

export function storedAnswers(store: Store, place: GroupPlace): Answers {
  return {
    read(key) {
      const ledger = new Ledger<JudgeAnswer>(store, AnswerFileSchema, (index) =>
        layout.groupAnswerKey(place, key, index),
      );
      return ledger.read();
    },
    write(question, number, answer) {
      const name = layout.groupAnswerKey(place, question, number);
      return publishStored(store, name, AnswerFileSchema, { schema: RECORD_SCHEMA, question, ...answer });
    },
    async keepQuestion(key, asked) {
      await store.publish(layout.groupQuestionKey(place, key), encodeJson({ schema: RECORD_SCHEMA, ...asked }));
    },
  };
}

/** For what is not durable. */
export function forgetfulVerdicts(): Verdicts {
  return { read: async () => null, write: async (_key, verdict) => verdict };
}

export function forgetfulAnswers(): Answers {
  return {
    read: async () => [],
    write: async (_key, _number, answer) => answer,
    keepQuestion: () => Promise.resolve(),
  };
}

function parseVerdictFile(bytes: Uint8Array, name: string): Verdict {
  const parsed = VerdictSchema.safeParse(decodeJson(bytes, name));
  if (parsed.success) return parsed.data;
  throw new TemperError('StoreCorrupt', `${name} is not a valid verdict; delete it, and the judge is called again`);
}

/** `QUESTION.NUMBER.json` */
const ANSWER_NAME = /\.\d+\.json$/;

/** Cost of a group's verdict for its run: the answers to all questions about it. */
export async function readGroupSpending(store: Store, place: GroupPlace): Promise<JudgeSpending> {
  const prefix = layout.groupAnswersPrefix(place);
  const names = (await childNames(store, prefix)).filter((name) => ANSWER_NAME.test(name));
  const answers = await Promise.all(names.map((name) => readStored(store, `${prefix}/${name}`, AnswerFileSchema)));
  return spendingOf(answers.filter((answer) => answer !== null));
}

export interface JudgeQuestion {
  /** Its hash: the key of its verdict. */
  readonly key: string;
  /** Null: it was not kept. */
  readonly asked: JudgeQuestionFile | null;
  readonly answers: readonly JudgeAnswerFile[];
}

const NAME = /^([0-9a-f]{64})\.(question|\d+)\.json$/;

/** What a judge was asked about a group, and what it answered. Several, if the agent's rubric or judge changed while the group was judged. */
export async function readJudgeQuestions(store: Store, place: GroupPlace): Promise<JudgeQuestion[]> {
  const prefix = layout.groupAnswersPrefix(place);
  const found = (await childNames(store, prefix)).flatMap((name) => {
    const [, key, part] = NAME.exec(name) ?? [];
    return key === undefined || part === undefined ? [] : [{ key, part }];
  });
  const questions = [...new Set(found.map(({ key }) => key))].map(async (key) => {
    const parts = found.filter((each) => each.key === key).map(({ part }) => part);
    const numbers = parts.filter((part) => part !== 'question').toSorted((a, b) => Number(a) - Number(b));
    const answers = numbers.map((number) => readStored(store, `${prefix}/${key}.${number}.json`, AnswerFileSchema));
    return {
      key,
      asked: await readStored(store, `${prefix}/${key}.question.json`, QuestionFileSchema),
      answers: (await Promise.all(answers)).filter((answer) => answer !== null),
    };
  });
  return Promise.all(questions);
}
