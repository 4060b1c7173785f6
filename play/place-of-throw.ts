/** Where the code of an agent threw an error. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `at rollout (file:///…/agent.ts?…:12:5)`, `at async /…/agent.ts:12:5` */
const FRAME = /^at (.*):(\d+):(\d+)\)?$/;
const ABSOLUTE = /^(?:\/|file:|[A-Za-z]:[\\/])/;

/** `agent.ts:12:5`, relative to the agent's folder; null if no frame of the stack is in it. */
export function placeOfThrow(error: unknown, folder: string | undefined): string | null {
  if (!(error instanceof Error) || error.stack === undefined || folder === undefined) return null;
  for (const line of error.stack.split('\n')) {
    const [, called = '', row, column] = FRAME.exec(line.trim()) ?? [];
    const [place = ''] = called
      .slice(called.lastIndexOf('(') + 1)
      .replace(/^async /, '')
      .split('?');
    const file = relative(folder, pathOf(place));
    if (ABSOLUTE.test(place) && !file.startsWith('..') && !file.includes('node_modules'))
      return `${file}:${row}:${column}`;
  }
  return null;
}

function pathOf(place: string): string {
  return place.startsWith('file:') && URL.canParse(place) ? fileURLToPath(place) : place;
}
