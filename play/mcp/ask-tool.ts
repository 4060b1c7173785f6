/** One call of a tool: the request that it is, and its answer as text. */
import type { Connection } from './connection.ts';
import type { ListedTool } from './list-tools.ts';
import { textOfCall, textOfPrompt, textOfResource } from './result-text.ts';

export interface ToolAnswer {
  readonly text: string;
  /** The server says that the call failed. */
  readonly failed: boolean;
}

export async function askTool(
  connection: Connection,
  { method, original }: ListedTool,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<ToolAnswer> {
  switch (method) {
    case 'tools/call': {
      const result = await connection.ask(method, { name: original, arguments: args }, signal);
      return { text: textOfCall(result), failed: result.isError === true };
    }
    case 'resources/list': {
      const { resources } = await connection.ask(method, {}, signal);
      return found(resources.map(({ uri, name, description, mimeType }) => ({ uri, name, description, mimeType })));
    }
    case 'resources/read': {
      const { contents } = await connection.ask(method, { uri: args['uri'] }, signal);
      return { text: contents.map(textOfResource).join('\n'), failed: false };
    }
    case 'prompts/list': {
      const { prompts } = await connection.ask(method, {}, signal);
      return found(prompts.map(({ name, description, arguments: takes }) => ({ name, description, arguments: takes })));
    }
    case 'prompts/get':
      return { text: textOfPrompt(await connection.ask(method, args, signal)), failed: false };
  }
}

function found(list: readonly object[]): ToolAnswer {
  return { text: JSON.stringify(list), failed: false };
}
