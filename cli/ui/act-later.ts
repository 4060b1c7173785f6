/** Actions and chats of `temper ui`, loaded when one is first asked for. */
import type { Acting } from './acting.ts';
import type { EnginesOptions } from './chat/engines.ts';

interface LaterActing {
  open(): Promise<Acting>;
  close(): Promise<void>;
}

export function actLater(options: EnginesOptions): LaterActing {
  let opened: Promise<Acting> | null = null;
  return {
    open: () => (opened ??= import('./acting.ts').then(({ openActing }) => openActing(options))),
    close: async () => (await opened)?.close(),
  };
}
