/** Reads what a judge was asked about a group and what it answered, for people. */
import type { JudgeAnswerFile, JudgeQuestionFile } from '../../core/contract-records.ts';
import { groupAnswersPrefix, type GroupPlace } from '../layout.ts';
import type { Store } from '../store.ts';
import { childNames } from './children.ts';
import { AnswerFileSchema, QuestionFileSchema, readStored } from './file-schemas.ts';

export interface JudgeQuestion {
  /** Its hash: the key of its verdict. */
  readonly key: string;
  /** Null: a version of Temper asked that did not keep it. */
  readonly asked: JudgeQuestionFile | null;
  readonly answers: readonly JudgeAnswerFile[];
}

const NAME = /^([0-9a-f]{64})\.(question|\d+)\.json$/;

/** Several, if the agent's rubric or judge changed while the group was judged. */
export async function readJudgeQuestions(store: Store, place: GroupPlace): Promise<JudgeQuestion[]> {
  const prefix = groupAnswersPrefix(place);
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
