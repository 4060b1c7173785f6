/** The scripted judge as a provider serves its models. */
import { Refusal, startChatServer, type ChatRequest, type ChatServer } from './chat-server.ts';
import { judgePlay, type Opinion } from './judge-play.ts';
import { readAttempts } from './read-prompt.ts';

export interface JudgeServerOptions {
  /** The port; by default any free one. */
  readonly port?: number;
  /** Told of each question, by the names of its attempts, before it is answered; the answer waits for it. */
  readonly onQuestion?: (names: readonly string[]) => void | Promise<void>;
  readonly onAnswer?: (opinions: readonly (Opinion & { readonly id: string })[]) => void;
}

export type JudgeServer = ChatServer;

export function startJudge(options: JudgeServerOptions = {}): Promise<JudgeServer> {
  return startChatServer(options.port ?? 0, (request) => answer(request, options));
}

async function answer(request: ChatRequest, { onQuestion, onAnswer }: JudgeServerOptions): Promise<string> {
  const attempts = readAttempts(promptOf(request));
  if (attempts.size === 0) throw new Refusal(400, 'a judge must be shown at least one attempt, the prompt has none');
  await onQuestion?.([...attempts.keys()]);
  const scores = [...attempts].map(([id, messages]) => ({ id, ...judgePlay(messages) }));
  onAnswer?.(scores);
  return JSON.stringify({ scores });
}

/** The attempts stand in what the user says; what a judge is told in front of that, this one knows. */
export function promptOf({ messages }: ChatRequest): string {
  const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
  return said.join('\n');
}
