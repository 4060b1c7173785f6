/** One installation for the whole project `installation`: the package in a user's project, whose local stack runs. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { JUDGE_KEY, startScriptedJudge } from '../play/judge/scripted-judge.ts';
import { ProjectFolder } from '../stack.ts';
import { installPackage, TEMPER, type Installation } from './installation.ts';
import { writePages } from './pages.ts';

declare module 'vitest' {
  interface ProvidedContext {
    installation: Installation;
  }
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export async function setup(vitest: TestProject): Promise<() => Promise<void>> {
  const judge = await startScriptedJudge();
  // Attempts that differ get scores that differ: a step has something to train.
  judge.scoreBy((lines) => (JSON.stringify(lines).length % 97) / 97);
  const installation = await installPackage({ OPENAI_BASE_URL: judge.url, OPENAI_API_KEY: JUDGE_KEY });
  const { folder, home, env } = installation;
  const project = new ProjectFolder(folder, { home, env });
  cpSync(here('../../examples'), join(folder, 'examples'), { recursive: true });
  writePages(folder);
  project.start(TEMPER, 'dev');
  vitest.provide('installation', installation);
  return async () => {
    await project.close();
    await judge.close();
  };
}
