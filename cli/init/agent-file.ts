/**
 * `agent.ts` of `temper init --task`: a template of Temper's with data in it. What a model wrote stands there as literals
 * alone, and is never code.
 */
import type { McpOptions } from '../scenarios/origin.ts';

export const AGENT_FILE = 'agent.ts';
export const TRAIN_FILE = 'scenarios.jsonl';
export const HELD_OUT_FILE = 'scenarios.held-out.jsonl';

export interface AgentFileParts {
  readonly name: string;
  /** The user's sentence. */
  readonly task: string;
  readonly systemPrompt: string;
  readonly rubric: string;
  readonly judge: JudgePart;
  /** Null for an agent that answers once. */
  readonly server: ServerPart | null;
}

/** The judge as `ruler` takes it. */
export interface JudgePart {
  readonly judge: string | { readonly baseUrl: string; readonly model: string; readonly keyVariable: string | null };
  /** US dollars for a million tokens; null where nobody knows. */
  readonly price: { readonly prompt: number; readonly completion: number } | null;
}

/** An MCP server as `mcp` takes it. */
interface ServerPart {
  readonly options: McpOptions;
  /** A server of its own for each attempt. */
  readonly isolate: boolean;
}

export const MAX_TURNS = 10;
/** The tool that ends an attempt with an MCP server. */
export const COMPLETE_TASK = 'complete_task';

export function agentFile(parts: AgentFileParts): string {
  return `${parts.server === null ? singleTurn(parts) : withServer(parts, parts.server)}\n`;
}

function singleTurn(parts: AgentFileParts): string {
  return `${header(parts)}
import { defineAgent, ruler } from 'temper-rl';

${texts(parts)}

export default defineAgent<Scenario>({
${definition(parts)}

  async rollout({ scenario, openai, model, metric }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [
        { role: 'system', content: SYSTEM_PROMPT },
        { role: 'user', content: scenario.task },
      ],
    });
    // Metrics are for you; the judge gives the reward.
    metric('characters', completion.choices[0]?.message.content?.length ?? 0);
  },
});`;
}

function withServer(parts: AgentFileParts, server: ServerPart): string {
  return `${header(parts)}
import { defineAgent, ruler, tool, toolLoop } from 'temper-rl';
import { mcp } from 'temper-rl/mcp';

const MAX_TURNS = ${MAX_TURNS};

${texts(parts)}

const server = mcp({
${serverOptions(server)}
});

const completeTask = tool({
  name: ${quoted(COMPLETE_TASK)},
  description: 'Ends the task. Call it once, when the task is done, with a summary of what you did and found.',
  parameters: { type: 'object', properties: { summary: { type: 'string' } }, required: ['summary'] },
  run: () => 'done',
  ends: true,
});

export default defineAgent<Scenario>({
${definition(parts)}
  mcp: [server],

  async rollout(context) {
    const { ended, turns } = await toolLoop(context, {
      messages: [
        { role: 'system', content: \`\${SYSTEM_PROMPT}\\n\\nYou have at most \${MAX_TURNS} turns.\` },
        { role: 'user', content: context.scenario.task },
      ],
      tools: [...(await server.tools(context)), completeTask],
      maxTurns: MAX_TURNS,
    });
    // Metrics are for you; the judge gives the reward.
    return { metrics: { completed: ended === 'tool', ranOutOfTurns: ended === 'turns', turns } };
  },
});`;
}

function header({ task }: AgentFileParts): string {
  const sentence = commentText(task).replace(/[^.!?]$/, '$&.');
  return `/** ${sentence} Written by temper init --task: read it, and change what you like. */`;
}

function texts({ systemPrompt, rubric }: AgentFileParts): string {
  return `interface Scenario {
  id: string;
  task: string;
  difficulty: number;
}

const SYSTEM_PROMPT = ${templateLiteral(systemPrompt)};

/** The judge compares attempts by it. */
const RUBRIC = ${templateLiteral(rubric)};`;
}

function definition({ name, judge }: AgentFileParts): string {
  return `  name: ${quoted(name)},
  scenarios: ${quoted(TRAIN_FILE)},
  // Never trained on: they show what was learned.
  evalScenarios: ${quoted(HELD_OUT_FILE)},
  reward: ruler({ ${rulerOptions(judge).join(', ')} }),`;
}

function rulerOptions({ judge, price }: JudgePart): string[] {
  const prices =
    price === null ? [] : [`usdPerMillionInput: ${price.prompt}`, `usdPerMillionOutput: ${price.completion}`];
  return [`judge: ${judgeLiteral(judge)}`, 'rubric: RUBRIC', ...prices];
}

function judgeLiteral(judge: JudgePart['judge']): string {
  if (typeof judge === 'string') return quoted(judge);
  const { baseUrl, model, keyVariable } = judge;
  const key = keyVariable === null ? '' : `, keyVariable: ${quoted(keyVariable)}`;
  return `{ baseUrl: ${quoted(baseUrl)}, model: ${quoted(model)}${key} }`;
}

function serverOptions({ options, isolate }: ServerPart): string {
  const lines = Object.entries(options).map(([name, value]) => `  ${name}: ${literal(value)},`);
  const own = isolate ? '  isolate: true,' : '  // All its tools only read, so that attempts can share it.';
  return [...lines, own].join('\n');
}

/** Control and format characters (directions, zero widths, tags), private ones, and separators of lines and paragraphs. */
const HIDDEN = /\p{Cc}|\p{Cf}|\p{Co}|\p{Zl}|\p{Zp}/gu;

/** `'…'`, on one line: a text can neither end its literal nor hide what it says. */
export function quoted(text: string): string {
  const escaped = text.toWellFormed().replaceAll(/[\\']/g, (character) => `\\${character}`);
  return `'${escaped.replaceAll(HIDDEN, escapeHidden)}'`;
}

/** A text, a number, a boolean, or a list of them. */
function literal(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  return Array.isArray(value) ? `[${value.map(literal).join(', ')}]` : String(value);
}

/** A template literal without substitutions, whose lines are the text's. */
export function templateLiteral(text: string): string {
  const escaped = text
    .toWellFormed()
    .replaceAll('\r\n', '\n')
    .replaceAll(/[\\`]|\$(?=\{)/g, (character) => `\\${character}`);
  return `\`${escaped.replaceAll(HIDDEN, (character) => (character === '\n' ? character : escapeHidden(character)))}\``;
}

/** Text for a comment of one line. */
export function commentText(text: string): string {
  return text.toWellFormed().replaceAll(HIDDEN, ' ').replaceAll(/\s+/g, ' ').replaceAll('*/', '* /').trim();
}

function escapeHidden(character: string): string {
  if (character === '\n') return '\\n';
  return `\\u{${character.codePointAt(0)!.toString(16)}}`;
}
