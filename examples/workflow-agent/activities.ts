/** The assistant's work outside of its workflow. */
import { Lookup } from '../email-search/lookup.ts';

export async function search({ mailbox, query }: { mailbox: number; query: string }): Promise<string> {
  return open(mailbox).search(query);
}

export async function read({ mailbox, id }: { mailbox: number; id: number }): Promise<string> {
  return open(mailbox).read(id);
}

/** The side effect that a person has to approve of. */
export async function send({ mailbox, text }: { mailbox: number; text: string }): Promise<void> {
  console.log(`mailbox ${mailbox}: sent ${JSON.stringify(text)}`);
}

function open(seed: number): Lookup {
  return new Lookup({ id: `mailbox-${seed}`, seed });
}
