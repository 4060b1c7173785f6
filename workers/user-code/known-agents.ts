/** Files of the agents that this project has played, by their code: a run names its agent's code, and no path. */
import { join } from 'node:path';
import { makeProjectFolders, projectFolders } from '../project/folders.ts';
import { readOwnFile, writeAtomically } from '../project/own-file.ts';

interface KnownAgent {
  readonly file: string;
  readonly codeSha256: string;
}

const FILE = 'agents.json';
/** The oldest give way. */
const MOST_KEPT = 200;

export function rememberAgent(project: string, { file, codeSha256 }: KnownAgent): void {
  const known = readKnown(project);
  if (known[codeSha256] === file) return;
  const entries = Object.entries(known).filter(([code]) => code !== codeSha256);
  const kept = [...entries, [codeSha256, file]].slice(-MOST_KEPT);
  writeAtomically(
    join(makeProjectFolders(project).state, FILE),
    `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`,
  );
}

/** The file that had this code; it may have changed, or be gone. */
export function recallAgent(project: string, codeSha256: string): string | null {
  return readKnown(project)[codeSha256] ?? null;
}

/** Empty if the file is missing or unreadable: it is only a help. */
function readKnown(project: string): Record<string, string> {
  try {
    const known = Object.entries(JSON.parse(readOwnFile(join(projectFolders(project).state, FILE)) ?? '') as object);
    return Object.fromEntries(known.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return {};
  }
}
