/** Agent and model folders as a user might have them, right and wrong. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const SDK = new URL('../../sdk/index.ts', import.meta.url).href;

export async function writeAgent(
  folder: string,
  { name = 'guess', scenarios = "[{ id: 'a' }, { id: 'b' }]", exported = 'export default', reward = '' } = {},
): Promise<string> {
  const file = join(folder, 'agent.ts');
  await write(
    file,
    `import { csv, defineAgent, ruler } from '${SDK}';\n${exported} defineAgent({ name: '${name}', scenarios: ${scenarios}, ${reward}rollout: async () => 0 });\n`,
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
