/** A recorded prompt as a chat has it. */
import type { MessageView } from '../../views/api/attempt-views.ts';
import { messageText } from '../../views/api/message-text.ts';

export interface Said {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** How the answer ended, or what went wrong; null while it comes. */
  readonly note: string | null;
  readonly isError: boolean;
}

interface PromptParts {
  readonly system: string;
  readonly said: readonly Said[];
  /** The last message, if it is the user's: it waits to be sent. */
  readonly text: string;
}

export function splitPrompt(messages: readonly MessageView[]): PromptParts {
  const isSystem = ({ role }: MessageView): boolean => role === 'system' || role === 'developer';
  const system = messages.filter(isSystem).map(({ text }) => text);
  const others = messages.filter((message) => !isSystem(message));
  const last = others.at(-1);
  const asked = last?.role === 'user' ? last.text : null;
  return {
    system: system.join('\n\n'),
    said: (asked === null ? others : others.slice(0, -1)).map(toSaid),
    text: asked ?? '',
  };
}

function toSaid(message: MessageView): Said {
  const role = message.role === 'assistant' ? 'assistant' : 'user';
  return { role, content: messageText(message), note: null, isError: false };
}
