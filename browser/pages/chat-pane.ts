/** One side of a chat: its conversation, and the answer that is coming. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { plural } from '../../core/reports/format.ts';
import type { ChatRequest, ApiError, ChatEvent } from '../../views/api/requests.ts';
import type { Said } from './prompt-parts.ts';
import { post } from '../data.ts';
import { readEvents } from './read-events.ts';

export interface ChatSettings {
  readonly system: string;
  readonly temperature: number | null;
  readonly maxTokens: number | null;
}

export interface ChatSide {
  readonly said: readonly Said[];
  /** Reason for the wait; null if no answer is coming. */
  readonly waiting: string | null;
  readonly send: (model: string, text: string, settings: ChatSettings) => Promise<void>;
  readonly stop: () => void;
  /** Replaces the conversation. */
  readonly begin: (said: readonly Said[]) => void;
  readonly clear: () => void;
}

export function useChatSide(): ChatSide {
  const [said, setSaid] = useState<readonly Said[]>([]);
  const [waiting, setWaiting] = useState<string | null>(null);
  const stopper = useRef<AbortController | null>(null);
  useEffect(() => () => stopper.current?.abort(), []);

  const send = async (model: string, text: string, settings: ChatSettings): Promise<void> => {
    const controller = new AbortController();
    stopper.current = controller;
    // What comes after another conversation has begun is not its own.
    const isCurrent = (): boolean => stopper.current === controller;
    const change = (update: (last: Said) => Said): void => {
      if (isCurrent()) setSaid((all) => [...all.slice(0, -1), update(all.at(-1)!)]);
    };
    const asked = [...said, { role: 'user', content: text, note: null, isError: false } as const];
    setSaid([...asked, { role: 'assistant', content: '', note: null, isError: false }]);
    setWaiting('waiting for the answer');
    try {
      for await (const event of streamChat(requestOf(model, asked, settings), controller.signal)) {
        if (event.kind === 'waiting') setWaiting(event.text);
        else if (event.kind === 'text') change((last) => ({ ...last, content: last.content + event.text }));
        else if (event.kind === 'error') change((last) => ({ ...last, note: event.text, isError: true }));
        else change((last) => ({ ...last, note: describeEnd(event.finishReason, event.tokens) }));
      }
    } catch (error) {
      const note = controller.signal.aborted ? 'stopped' : (error as Error).message;
      change((last) => ({ ...last, note, isError: !controller.signal.aborted }));
    }
    if (isCurrent()) setWaiting(null);
  };
  const begin = (next: readonly Said[]): void => {
    stopper.current?.abort();
    stopper.current = null;
    setSaid(next);
    setWaiting(null);
  };
  return {
    said,
    waiting,
    send,
    stop: () => stopper.current?.abort(),
    begin,
    clear: () => begin([]),
  };
}

/** Answers that failed are not part of the conversation. */
function requestOf(model: string, said: readonly Said[], settings: ChatSettings): ChatRequest {
  const turns = said.filter(({ content }) => content !== '').map(({ role, content }) => ({ role, content }));
  return {
    model,
    messages: [...(settings.system === '' ? [] : [{ role: 'system' as const, content: settings.system }]), ...turns],
    ...(settings.temperature !== null && { temperature: settings.temperature }),
    ...(settings.maxTokens !== null && { maxTokens: settings.maxTokens }),
  };
}

function describeEnd(finishReason: string | null, tokens: number | null): string {
  return [finishReason === null ? null : `ended by ${finishReason}`, tokens === null ? null : plural(tokens, 'token')]
    .filter((part) => part !== null)
    .join(', ');
}

/** A chat's answer as it comes: server-sent events of a POST, which EventSource cannot send. */
async function* streamChat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatEvent> {
  const response = await post('chat', request, signal);
  if (!response.ok || response.body === null) {
    const refused = (await response.json().catch(() => null)) as ApiError | null;
    yield { kind: 'error', text: refused?.error.message ?? `the server answered ${response.status}` };
    return;
  }
  yield* readEvents(response.body);
}
