/** The assistant's work outside of its workflow. */
import { makeMailbox } from './mailbox.ts';

/** Ids of the mails that have the word, the newest first. */
export async function search({ mailbox, query }: { mailbox: number; query: string }): Promise<string> {
  const hits = makeMailbox(mailbox).mails.filter(({ body }) => body.match(/\w+/g)?.includes(query));
  return `[${hits
    .toReversed()
    .map(({ id }) => id)
    .join(', ')}]`;
}

export async function read({ mailbox, id }: { mailbox: number; id: number }): Promise<string> {
  return makeMailbox(mailbox).mails.find((mail) => mail.id === id)?.body ?? 'Error: no such id';
}

/** The side effect that a person has to approve of. */
export async function send({ mailbox, text }: { mailbox: number; text: string }): Promise<void> {
  console.log(`mailbox ${mailbox}: sent ${JSON.stringify(text)}`);
}
