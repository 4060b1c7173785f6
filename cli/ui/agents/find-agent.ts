/** The file of a run's agent, which the store does not name: found in the project by its code, or by its name. */
import { readdir, readFile, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve } from 'node:path';
import { badConfig } from '../../../core/contract/failures.ts';
import type { RunFile } from '../../../store/records/runs/run-reader.ts';
import { agentCodeSha256, findAgentFile } from '../../../workers/user-code/agent-code.ts';
import { recallAgent } from '../../../workers/user-code/known-agents.ts';
import { loadAgent, type AgentFile } from '../../planning/load-agent.ts';

export interface FoundAgent extends AgentFile {
  /** Its code is what the run was started with. */
  readonly isUnchanged: boolean;
}

const MODULE = /\.[mc]?[jt]s$/;
const NO_FOLDERS = /^(\.|node_modules$|dist$|build$|coverage$|venv$|__pycache__$)/;
const DEEPEST = 5;
const MOST_FILES = 2000;

/** Files that were found or named, by run: they are asked for once. */
const known = new Map<string, string>();

export async function findAgentOf(
  { config, agentCodeSha256: code, loop }: Pick<RunFile, 'config' | 'agentCodeSha256' | 'loop'>,
  project: string,
  named: string | null,
): Promise<FoundAgent> {
  if (loop !== undefined)
    throw badConfig(
      `${config.run} is trained by a script of its own, which alone can play its attempts; only runs of an agent file can be played here`,
    );
  const place = JSON.stringify([project, config.run]);
  const file = named ?? known.get(place) ?? (await search(project, config.agent, code));
  if (file === null)
    throw badConfig(
      `the file of the agent ${config.agent} must be known to play it, but no file below ${project} defines it${describeChanged(project, code)}; name the file (agentFile)`,
    );
  const path = findAgentFile(resolve(project, file));
  const isUnchanged = (await agentCodeSha256(path)) === code;
  // Loading a file runs it: whoever may act here chooses among the project's own, and the very code of the run.
  if (!isUnchanged && !isBelow(await realpath(path), await realpath(project)))
    throw badConfig(
      `the agent's file must be in the project ${project}, or have the code that ${config.run} was started with, got ${path}; name another file (agentFile)`,
    );
  const loaded = await loadAgent(path, project);
  if (loaded.agent.name !== config.agent)
    throw badConfig(
      `the agent of ${config.run} is ${config.agent}, but ${loaded.path} defines ${loaded.agent.name}; name another file (agentFile)`,
    );
  known.set(place, loaded.path);
  return { ...loaded, isUnchanged };
}

function describeChanged(project: string, code: string): string {
  const before = recallAgent(project, code);
  return before === null ? '' : `, and ${before}, which the run was started with, has changed or is gone`;
}

function isBelow(file: string, folder: string): boolean {
  const path = relative(folder, file);
  return !path.startsWith('..') && !isAbsolute(path);
}

/** First by the code that the run was started with, also in files elsewhere that this project has played; else by the name in it. */
async function search(project: string, agent: string, code: string): Promise<string | null> {
  const files: string[] = [];
  let reads = 0;
  for await (const file of modulesBelow(project, DEEPEST)) {
    if (++reads > MOST_FILES) break;
    const text = await readFile(file, 'utf8');
    if (text.includes('defineAgent') && text.includes(agent)) files.push(file);
  }
  const elsewhere = recallAgent(project, code) ?? [];
  for (const file of [...files, elsewhere].flat()) if ((await hashOrNull(file)) === code) return file;
  const quoted = new RegExp(`["'\`]${agent.replaceAll('.', '\\.')}["'\`]`);
  const byName: string[] = [];
  for (const file of files) if (quoted.test(await readFile(file, 'utf8'))) byName.push(file);
  if (byName.length <= 1) return byName[0] ?? null;
  const shown = byName.map((file) => relative(project, file)).join(', ');
  throw badConfig(`the agent ${agent} must be defined in one file, it is in ${shown}; name one of them (agentFile)`);
}

/** A file with a broken import has no hash. */
async function hashOrNull(file: string): Promise<string | null> {
  try {
    return await agentCodeSha256(file);
  } catch {
    return null;
  }
}

async function* modulesBelow(folder: string, depth: number): AsyncGenerator<string> {
  // A folder that this user may not read has no agent of theirs.
  const found = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const entries = found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) if (entry.isFile() && MODULE.test(entry.name)) yield join(folder, entry.name);
  if (depth === 0) return;
  for (const entry of entries)
    if (entry.isDirectory() && !NO_FOLDERS.test(entry.name)) yield* modulesBelow(join(folder, entry.name), depth - 1);
}
