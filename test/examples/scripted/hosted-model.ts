/** A hosted model without cost: it makes up the scenarios of a script, solves them, and judges answers to them. */
import {
  Refusal,
  startChatServer,
  type ChatAnswer,
  type ChatMessage,
  type ChatRequest,
  type ChatServer,
} from './chat-server.ts';
import { promptOf } from './judge-server.ts';
import { readBlocks, type Block } from './read-prompt.ts';

export interface ScriptedTask {
  readonly task: string;
  readonly difficulty: number;
  /** Calls that find the answer, in order. */
  readonly calls: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[];
  readonly answer: string;
}

/** Everything that the model knows. */
export interface Script {
  /** Offered in this order. */
  readonly tasks: readonly ScriptedTask[];
  readonly systemPrompt: string;
  readonly rubric: string;
}

/** `onAnswer` is told the kind of each answer. */
export function startScriptedModel(script: Script, port = 0, onAnswer?: (kind: string) => void): Promise<ChatServer> {
  return startChatServer(port, (request) => {
    const blocks = readBlocks(promptOf(request));
    const kind = kindOf(request, blocks);
    onAnswer?.(kind);
    const answer = KINDS.get(kind);
    if (answer === undefined) throw new Refusal(400, `the script has no answer of the form ${kind}`);
    return answer(script, blocks, request);
  });
}

/** The name of the form that an answer must have; a judge by RULER and an agent are asked without a form. */
function kindOf({ response_format: form }: ChatRequest, blocks: readonly Block[]): string {
  const name = form?.json_schema?.name;
  return name ?? (blocks.some(({ kind }) => kind === 'attempt') ? 'scores' : 'turn');
}

type Answer = (script: Script, blocks: readonly Block[], request: ChatRequest) => ChatAnswer;

const ANSWERS: Readonly<Record<string, Answer>> = {
  turn: (script, _blocks, { messages }) => takeTurn(script, messages),
  scenarios: (script, blocks) => JSON.stringify({ scenarios: makeUp(script, blocks) }),
  verdict: (script, blocks) => {
    const [task, attempt] = [values(blocks, 'task')[0], blocks.find(({ kind }) => kind === 'attempt')];
    const { score, explanation } = judge(taskOf(script, String(task)), messagesOf(attempt));
    return JSON.stringify({ explanation, solved: score > 0 });
  },
  scores: (script, blocks) => JSON.stringify({ scores: compare(script, blocks) }),
  agent: ({ systemPrompt, rubric }) => JSON.stringify({ systemPrompt, rubric }),
  rubric: ({ rubric }) => JSON.stringify({ rubric }),
  samples: (script, blocks) => {
    const { answer } = taskOf(script, String(values(blocks, 'input')[0]));
    return JSON.stringify({ good: answer, mediocre: `It may be ${answer}.`, bad: 'It is hard to say.' });
  },
};

const KINDS: ReadonlyMap<string, Answer> = new Map(Object.entries(ANSWERS));

/** Tasks that are not there yet, at most as many as are asked for. */
function makeUp({ tasks }: Script, blocks: readonly Block[]) {
  const existing = new Set(values(blocks, 'existing').map((each) => (each as { task: string }).task));
  const [{ count }] = values(blocks, 'request') as [{ count: number }];
  const left = tasks.filter(({ task }) => !existing.has(task));
  return left.slice(0, count).map(({ task, difficulty }) => ({ task, difficulty }));
}

/** A call for each turn, and the answer after them: as text, or by the tool that ends the attempt. */
function takeTurn(script: Script, messages: readonly ChatMessage[]): ChatAnswer {
  const { calls, answer } = taskOf(script, messages.find(({ role }) => role === 'user')?.content ?? '');
  const turn = messages.filter(({ role }) => role === 'assistant').length;
  return calls[turn] ?? (calls.length > 0 ? { name: 'complete_task', arguments: { summary: answer } } : answer);
}

function taskOf({ tasks }: Script, text: string): ScriptedTask {
  const found = tasks.find(({ task }) => task === text);
  if (found === undefined) throw new Refusal(400, `the script has no task ${JSON.stringify(text)}`);
  return found;
}

interface Told {
  readonly role: string;
  readonly content?: unknown;
  /** Calls, as text. */
  readonly tool_calls?: unknown;
}

function compare(script: Script, blocks: readonly Block[]) {
  const shared = messagesOf(blocks.find(({ kind }) => kind === 'task'));
  const attempts = blocks.filter(({ kind }) => kind === 'attempt');
  return attempts.map((attempt) => {
    const messages = [...shared, ...messagesOf(attempt)];
    const asked = messages.find(({ role }) => role === 'user')?.content;
    return { id: attempt.name, ...judge(taskOf(script, String(asked)), messages) };
  });
}

const EXACT = 1;
const WITH_OTHER_WORDS = 0.5;

/** The last message of the agent counts: the answer alone is best, the answer among other words is half as good. */
function judge({ answer }: ScriptedTask, messages: readonly Told[]): { score: number; explanation: string } {
  const last = messages.findLast(({ role }) => role === 'assistant');
  const said = typeof last?.content === 'string' && last.content !== '' ? last.content : summaryOf(last?.tool_calls);
  if (said === answer) return { score: EXACT, explanation: `It answers ${answer} and nothing else.` };
  if (new RegExp(`\\b${answer}\\b`).test(said))
    return { score: WITH_OTHER_WORDS, explanation: `It answers ${answer} among other words.` };
  return { score: 0, explanation: `It does not answer ${answer}.` };
}

/** The summary that a call of `complete_task` hands in. */
function summaryOf(calls: unknown): string {
  return /\\*"summary\\*": *\\*"(.*?)\\*"/.exec(typeof calls === 'string' ? calls : '')?.[1] ?? '';
}

function messagesOf(block: Block | undefined): Told[] {
  return (block?.lines ?? []).map((line) => JSON.parse(line) as Told);
}

/** Values that the first block of a kind quotes. */
function values(blocks: readonly Block[], kind: string): unknown[] {
  return (blocks.find((block) => block.kind === kind)?.lines ?? []).map((line) => JSON.parse(line) as unknown);
}
