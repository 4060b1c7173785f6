/** A chat's answer as it comes: server-sent events of a POST, which EventSource cannot send. */
import type { ApiError, ChatEvent, ChatRequest } from '../../views/api/requests.ts';
import { post } from '../data.ts';
import { readEvents } from './read-events.ts';

export async function* streamChat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatEvent> {
  const response = await post('chat', request, signal);
  if (!response.ok || response.body === null) {
    const refused = (await response.json().catch(() => null)) as ApiError | null;
    yield { kind: 'error', text: refused?.error.message ?? `the server answered ${response.status}` };
    return;
  }
  yield* readEvents(response.body);
}
