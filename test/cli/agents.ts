/** Agent and model folders as a user might have them, right and wrong. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Modules of `temper-rl` that agents of tests import: to load all of it takes longer than to play such an agent. */
const SDK_MODULES = {
  csv: 'agent/sources.ts',
  defineAgent: 'agent/define-agent.ts',
  policy: 'roles/roles.ts',
  resource: 'agent/resource.ts',
  ruler: 'ruler/score.ts',
} as const;

/** Imports of an agent's file, in one line. */
export function sdkImports(...names: readonly (keyof typeof SDK_MODULES)[]): string {
  const urlOf = (name: keyof typeof SDK_MODULES) => new URL(`../../sdk/${SDK_MODULES[name]}`, import.meta.url).href;
  return names.map((name) => `import { ${name} } from '${urlOf(name)}';`).join(' ');
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
