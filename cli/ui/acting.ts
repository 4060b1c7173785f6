/** Actions and chats of `temper ui`, which take 30 MB: they are loaded with the first of them. */
import { uiActions } from './action-table.ts';
import type { ActionTable } from './actions/planned-action.ts';
import { createChat, type UiChat } from './chat/chat.ts';
import { Engines, type EnginesOptions } from './chat/engines.ts';

export interface Acting {
  readonly actions: ActionTable;
  readonly chat: UiChat;
  close(): Promise<void>;
}

export function openActing(options: EnginesOptions): Acting {
  const engines = new Engines(options);
  return { actions: uiActions(engines), chat: createChat(options, engines), close: () => engines.close() };
}
