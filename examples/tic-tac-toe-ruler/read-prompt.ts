/** Reads what RULER asks a judge: blocks of quoted messages, known by their delimiters alone. */
export interface ReadMessage {
  readonly role: string;
  readonly content: string;
}

const OPENING = /^<(task|tools|attempt) ([\w-]+)>$/;

/** By the attempts' names: the messages of each, in the order in which they were said. */
export function readAttempts(prompt: string): ReadonlyMap<string, readonly ReadMessage[]> {
  const blocks = readBlocks(prompt);
  const task = blocks.find(({ kind }) => kind === 'task')?.lines ?? [];
  const attempts = blocks.filter(({ kind }) => kind === 'attempt');
  return new Map(attempts.map(({ name, lines }) => [name, inOrder([...task, ...lines])]));
}

interface Block {
  readonly kind: string;
  readonly name: string;
  readonly lines: string[];
}

function readBlocks(prompt: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | null = null;
  for (const line of prompt.split('\n')) {
    const [, kind, name = ''] = OPENING.exec(line) ?? [];
    if (open !== null && line === `</${open.kind} ${open.name}>`) open = null;
    else if (open !== null) open.lines.push(line);
    else if (kind !== undefined) blocks.push((open = { kind, name, lines: [] }));
  }
  return blocks;
}

/** The conversation that an attempt ended with stands first, the further ones after it. */
function inOrder(lines: readonly string[]): ReadMessage[] {
  const conversations: ReadMessage[][] = [[]];
  for (const line of lines) {
    const { role, content, further } = JSON.parse(line) as Record<string, unknown>;
    if (further !== undefined) conversations.push([]);
    // What was cut is no board and no move.
    else conversations.at(-1)!.push({ role: String(role), content: typeof content === 'string' ? content : '' });
  }
  const [last = [], ...before] = conversations;
  return [...before.flat(), ...last];
}
