/** Answers of hosted models that a command paid for, stored before use. */
import pLimit from 'p-limit';

import type { z } from 'zod';

import * as layout from '../layout.ts';
import type { Store } from '../store.ts';
import { childNames, GROUPS_AT_ONCE } from './children.ts';
import { HostedAnswerFileSchema, publishStored, readStored } from './file-schemas.ts';

export type HostedAnswerFile = z.output<typeof HostedAnswerFileSchema>;

export async function readHostedAnswers(store: Store, work: string): Promise<Map<string, HostedAnswerFile>> {
  const prefix = layout.hostedAnswersPrefix(work);
  const limit = pLimit(GROUPS_AT_ONCE);
  const read = async (name: string): Promise<[string, HostedAnswerFile][]> => {
    const answer = await readStored(store, `${prefix}/${name}`, HostedAnswerFileSchema);
    return answer === null ? [] : [[name.replace(/\.json$/, ''), answer]];
  };
  const names = await childNames(store, prefix);
  return new Map((await Promise.all(names.map((name) => limit(() => read(name))))).flat());
}

/** A second writer gets the first one's answer. */
export function publishHostedAnswer(store: Store, key: string, answer: HostedAnswerFile): Promise<HostedAnswerFile> {
  return publishStored(store, key, HostedAnswerFileSchema, answer);
}
