/** The tools of server-filesystem as the server describes them, for a larger model. Nobody has trained this agent yet. */
import { defineAgent, toolLoop } from 'temper-rl';
import { mcp } from 'temper-rl/mcp';
import { FILES, type Task } from './files.ts';
import { gradeAnswer } from './grade.ts';

const files = mcp({ ...FILES, only: ['list_directory', 'read_text_file', 'read_multiple_files'] });

const TASK = `You answer questions from a folder of notes. BOR/8.txt is the eighth note on BOR, and newer than BOR/4.txt. The newest note is right. Answer with the word that it tells and its number, such as KEL 8.`;

export default defineAgent<Task>({
  name: 'mcp',
  scenarios: 'scenarios.jsonl',
  evalScenarios: 'scenarios.held-out.jsonl',
  mcp: [files],

  async rollout(context) {
    const { task } = context.scenario;
    const { answer, calls } = await toolLoop(context, {
      messages: [
        { role: 'system', content: TASK },
        { role: 'user', content: task },
      ],
      tools: await files.tools(context),
      maxTurns: 6,
      maxTokensPerTurn: 512,
    });
    return gradeAnswer(task, answer, new Set(calls.flatMap((call) => pathsOf(call.arguments))));
  },
});

/** Paths that a call names: `path`, or `paths` of several files. */
function pathsOf(named: unknown): string[] {
  const { path, paths } = (named ?? {}) as { path?: unknown; paths?: unknown };
  return [path, paths].flat().filter((each) => typeof each === 'string');
}
