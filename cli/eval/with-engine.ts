/** The engine of the local stack, for as long as something is played with it; no stack is started where nobody needs one. */
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import { openLocalStack } from '../../workers/local-stack/client.ts';
import type { Surroundings } from '../command-line/command.ts';
import { createEventPrinter } from '../terminal/stack-events.ts';
import type { Players } from './players.ts';

/** `work` gets null where all players are hosted. */
export async function withEngine<T>(
  { players, models }: Players,
  { project, output, signal, env }: Surroundings,
  work: (engine: EngineAddress | null) => Promise<T>,
): Promise<T> {
  if (players.every(({ hosted }) => hosted !== null)) return work(null);
  const stack = await openLocalStack({
    project,
    agentFile: null,
    models,
    // Progress is not the result: it goes where pipes do not see it.
    onEvent: createEventPrinter((line) => output.errorLine(line)),
    signal,
    env,
  });
  try {
    return await work({ url: stack.engineUrl, key: stack.engineKey });
  } finally {
    await stack.close();
  }
}
