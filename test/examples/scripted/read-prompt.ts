/** Reads what Temper asks a hosted model: blocks of quoted data, known by their delimiters alone. */
export interface ReadMessage {
  readonly role: string;
  readonly content: string;
}

const OPENING = /^<([a-z]+) ([\w-]+)>$/;

/** Messages by the attempts' names, conversation by conversation. */
export function readAttempts(prompt: string): ReadonlyMap<string, readonly ReadMessage[]> {
  const blocks = readBlocks(prompt);
  const task = blocks.find(({ kind }) => kind === 'task')?.lines ?? [];
  const attempts = blocks.filter(({ kind }) => kind === 'attempt');
  return new Map(attempts.map(({ name, lines }) => [name, readMessages([...task, ...lines])]));
}

/** Its lines are JSON. */
export interface Block {
  readonly kind: string;
  readonly name: string;
  readonly lines: string[];
}

export function readBlocks(prompt: string): Block[] {
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

/** Messages of all conversations of an attempt: a line without a role stands between two, or says how much was cut. */
function readMessages(lines: readonly string[]): ReadMessage[] {
  return lines.flatMap((line) => {
    const { role, content } = JSON.parse(line) as Record<string, unknown>;
    // A cut message is no text any more, and no board and no move either.
    return typeof role === 'string' ? [{ role, content: typeof content === 'string' ? content : '' }] : [];
  });
}
