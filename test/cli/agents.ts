/** Agent and model folders as a user might have them, right and wrong. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { defineAgent } from '../../sdk/agent/define-agent.ts';
import { resource } from '../../sdk/agent/resource.ts';
import { csv } from '../../sdk/agent/sources.ts';
import { mcp } from '../../sdk/mcp/mcp.ts';
import { policy } from '../../sdk/roles/roles.ts';
import { ruler } from '../../sdk/ruler/score.ts';
import { toolLoop } from '../../sdk/tools/tool-loop.ts';
import { tool } from '../../sdk/tools/tool.ts';
import { defineConfig } from '../../workers/config/config.ts';

/** Of `temper-rl`, for agents that this process loads: a copy of it for each of them would take longer than to play it. */
const SDK = { csv, defineAgent, defineConfig, mcp, policy, resource, ruler, tool, toolLoop };
const SHARED = 'temper.tests.sdk';
Object.assign(globalThis, { [Symbol.for(SHARED)]: SDK });

/** In the place of an agent file's imports, in one line. */
export function sdkImports(...names: readonly (keyof typeof SDK)[]): string {
  return `const { ${names.join(', ')} } = globalThis[Symbol.for('${SHARED}')];`;
}

export async function writeAgent(
  folder: string,
  { name = 'guess', scenarios = "[{ id: 'a' }, { id: 'b' }]", exported = 'export default', reward = '' } = {},
): Promise<string> {
  const file = join(folder, 'agent.ts');
  const used = (['csv', 'ruler'] as const).filter((part) => `${scenarios} ${exported} ${reward}`.includes(`${part}(`));
  await write(
    file,
    `${sdkImports('defineAgent', ...used)}\n${exported} defineAgent({ name: '${name}', scenarios: ${scenarios}, ${reward}rollout: async () => 0 });\n`,
  );
  return file;
}

/** The files of a model folder by their names; nobody loads them in these tests. */
export async function writeModel(folder: string, files: readonly string[]): Promise<string> {
  for (const file of files) await write(join(folder, file), '{}');
  return folder;
}

export async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}
