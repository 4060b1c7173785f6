/** Stands for the person who reads a draft. */
import { parseSmallAnswer } from '../email-search/lookup.ts';
import { makeSmallMailbox } from '../email-search/small-mailbox.ts';

export function questionOf(mailbox: number): string {
  return makeSmallMailbox(mailbox).questions[0]!.text;
}

/** Approves of the newest mail's word, with or without its id. */
export function approves(mailbox: number, draft: string | null): boolean {
  const { answer } = makeSmallMailbox(mailbox).questions[0]!;
  return draft !== null && parseSmallAnswer(draft)?.text === answer;
}
