/** OpenAI's chat completions. The recorder uses the same terms, so there is little to translate. */
import type { ChatMessage } from '../../store/records/trajectories.ts';
import { badParameter } from '../recorder/request.ts';
import type { Dialect } from './dialect.ts';

export const chat: Dialect = {
  path: '/chat/completions',
  parse(body) {
    const asked = withoutNulls(JSON.parse(body) as Record<string, unknown>);
    const { messages, stream } = asked;
    if (!Array.isArray(messages) || messages.length === 0)
      throw badParameter('messages', messages, 'must be a list of at least one message', 'see the OpenAI API');
    if (stream === true) throw badParameter('stream', stream, 'is not in this version', 'leave it out');
    return { ...asked, messages: messages as ChatMessage[] };
  },
  write: (completion) => completion,
  writeError: (error) => ({ error }),
};

/** In OpenAI's API, null means absent. */
function withoutNulls(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}
