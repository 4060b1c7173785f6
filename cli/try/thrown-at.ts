/** Location at which an agent's code threw: the first frame of the stack in the agent's folder. */
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `at rollout (file:///…/agent.ts?…:12:5)`, `at /…/agent.ts:12:5` */
const FRAME =
  /(?:\(|at (?:async )?)((?:file:\/\/)?\/[^()]*?|(?:file:\/\/\/)?[A-Za-z]:[\\/][^()]*?)(?:\?[^:()]*)?:(\d+):(\d+)\)?$/;

/** `agent.ts:12:5`, relative to the agent's folder; null if no frame of the stack is in it. */
export function placeOfThrow(error: unknown, agentFile: string): string | null {
  if (!(error instanceof Error) || error.stack === undefined) return null;
  const folder = dirname(agentFile);
  for (const line of error.stack.split('\n')) {
    const [, place = '', row, column] = FRAME.exec(line.trim()) ?? [];
    const file = relative(folder, pathOf(place));
    if (place !== '' && !file.startsWith('..') && !file.includes('node_modules')) return `${file}:${row}:${column}`;
  }
  return null;
}

function pathOf(place: string): string {
  return place.startsWith('file:') && URL.canParse(place) ? fileURLToPath(place) : place;
}
