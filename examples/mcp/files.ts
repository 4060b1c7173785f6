/** The server, and a task in the form of `temper scenarios`: both agents share them. */
export interface Task {
  readonly id: string;
  readonly task: string;
  /** From 1, the easiest, to 5. */
  readonly difficulty: number;
}

/** It is started in the folder of the agent's file, and serves the folder that `write-notes.ts` fills. */
export const FILES = {
  command: 'npx',
  args: ['-y', '@modelcontextprotocol/server-filesystem', 'notes'],
  // The first start downloads it.
  startTimeoutMs: 300_000,
};
