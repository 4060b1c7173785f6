/** Argument and result of a redaction function. */
import type { ChatMessage } from './trajectories.ts';

export interface ServedConversation {
  /** Its name; null before the first answer of one that the client does not name. */
  conversation: string | null;
  /** Checkpoint that answered. */
  policy: string;
  /** The answer is the last one. */
  messages: ChatMessage[];
  tools: unknown[];
}

/** Text to keep, or null to keep nothing of this answer. */
export type RedactConversation = (
  conversation: ServedConversation,
) => RedactedConversation | null | Promise<RedactedConversation | null>;

export type RedactedConversation = Pick<ServedConversation, 'messages'> & Partial<ServedConversation>;
