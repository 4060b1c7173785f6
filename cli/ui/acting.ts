/** Chats of `temper ui` and their engines, which take 30 MB: they are loaded when one is first asked for. */
import type { UiChat } from './chat/chat.ts';
import type { Engines, EnginesOptions } from './chat/engines.ts';

interface Acting {
  readonly engines: Engines;
  readonly chat: UiChat;
}

interface LaterActing {
  open(): Promise<Acting>;
  close(): Promise<void>;
}

export function actLater(options: EnginesOptions): LaterActing {
  let opened: Promise<Acting> | null = null;
  const load = async (): Promise<Acting> => {
    const [{ Engines: Own }, { createChat }] = await Promise.all([
      import('./chat/engines.ts'),
      import('./chat/chat.ts'),
    ]);
    const engines = new Own(options);
    return { engines, chat: createChat(options, engines) };
  };
  return { open: () => (opened ??= load()), close: async () => (await opened)?.engines.close() };
}
