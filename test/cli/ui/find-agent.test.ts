import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findAgentOf } from '../../../cli/ui/agents/find-agent.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { writeAgent } from '../agents.ts';

test('a search for the file of an agent reads 2,000 modules at most', async () => {
  const project = temporaryFolder();
  const file = await writeAgent(join(project, 'z'));
  for (let index = 0; index < 2000; index++) writeFileSync(join(project, `${index}.ts`), '');
  const config = defaultRunConfig({ run: 'demo', agent: 'guess', baseModel: 'pocket', steps: 1 });
  const find = () => findAgentOf({ config, agentCodeSha256: 'a'.repeat(64) }, project, null);
  await expect(find()).rejects.toThrow('no file below');
  rmSync(join(project, '0.ts'));
  expect(await find()).toMatchObject({ path: file, isUnchanged: false });
});
