/** Learns to answer from the newest note: two tools of server-filesystem, named as `pocket-tools` knows them. */
import { defineAgent, tool, toolLoop } from 'temper-rl';
import { mcp, type McpTool } from 'temper-rl/mcp';
import { z } from 'zod';
import { gradeAnswer } from './grade.ts';
import { FILES, type Task } from './files.ts';

const files = mcp({ ...FILES, only: ['list_directory', 'read_text_file'] });

export default defineAgent<Task>({
  name: 'mcp-small',
  scenarios: 'scenarios.jsonl',
  evalScenarios: 'scenarios.held-out.jsonl',
  mcp: [files],

  async rollout(context) {
    const { task } = context.scenario;
    const read = new Set<string>();
    const { answer } = await toolLoop(context, {
      messages: [{ role: 'user', content: task }],
      tools: smallTools(await files.tools(context), read),
      maxTurns: 5,
      maxTokensPerTurn: 64,
    });
    return gradeAnswer(task, answer, read);
  },
});

/** To the byte what the warm start of `pocket-tools` has. A larger model takes the server's tools as they are: `agent.ts`. */
function smallTools(tools: readonly McpTool[], read: Set<string>) {
  const ask = (name: string, args: object) => tools.find((each) => each.name === name)!.text(args);
  let folder = '';
  const search = tool({
    name: 'search',
    description: 'Ids of what has the word.',
    parameters: z.object({ query: z.string() }),
    run: async ({ query }) => {
      folder = query;
      const listed = await ask('list_directory', { path: query });
      const numbers = [...listed.matchAll(/^\[FILE\] (\d+)\.txt$/gm)].map(([, number]) => Number(number));
      return `[${numbers.toSorted((a, b) => b - a).join(', ')}]`;
    },
  });
  const readText = tool({
    name: 'read',
    description: 'The text of an id.',
    parameters: z.object({ id: z.number() }),
    run: async ({ id }) => {
      const path = `${folder}/${id}.txt`;
      read.add(path);
      const text = await ask('read_text_file', { path });
      return text.startsWith('Error') ? 'Error: no such id' : text;
    },
  });
  return [search, readText];
}
