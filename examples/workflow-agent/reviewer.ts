/** Stands for the person who reads a draft. */
import { makeMailbox } from './mailbox.ts';

/** Approves of the newest mail's word, with or without its id: `KEL`, or `KEL 4`. */
export function approves(mailbox: number, draft: string | null): boolean {
  return /^([A-Z]+)(?: \d+)?$/.exec(draft ?? '')?.[1] === makeMailbox(mailbox).answer;
}
