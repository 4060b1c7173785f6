/** Answers of hosted models that a command paid for, stored before use. */
import pLimit from 'p-limit';

import { decodeJson, encodeJson } from '../bytes/json.ts';
import * as layout from '../layout.ts';
import type { Store } from '../store.ts';
import { childNames, GROUPS_AT_ONCE } from './children.ts';

/** `generated/<work>/answers/<key>.json`. */
export interface HostedAnswerFile {
  readonly schema: 1;
  /** Purpose of the call, for people. */
  readonly label: string;
  readonly model: string;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** Null if it is not known. */
  readonly usd: number | null;
  /** The answer's body as it came; null if it is stored elsewhere. */
  readonly text: string | null;
}

export async function readHostedAnswers(store: Store, work: string): Promise<Map<string, HostedAnswerFile>> {
  const prefix = layout.hostedAnswersPrefix(work);
  const limit = pLimit(GROUPS_AT_ONCE);
  const read = async (name: string): Promise<[string, HostedAnswerFile][]> => {
    const bytes = await store.read(`${prefix}/${name}`);
    return bytes === null
      ? []
      : [[name.replace(/\.json$/, ''), decodeJson(bytes, `${prefix}/${name}`) as HostedAnswerFile]];
  };
  const names = await childNames(store, prefix);
  return new Map((await Promise.all(names.map((name) => limit(() => read(name))))).flat());
}

/** A second writer gets the first one's answer. */
export async function publishHostedAnswer(
  store: Store,
  key: string,
  answer: HostedAnswerFile,
): Promise<HostedAnswerFile> {
  const { bytes } = await store.publish(key, encodeJson(answer));
  return decodeJson(bytes, key) as HostedAnswerFile;
}
