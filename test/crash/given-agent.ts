/** An agent whose rewards come from outside, and which of its attempts wait for one. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { formatAttemptId } from '../../core/names/attempt-id.ts';
import { listAwaited } from '../../store/records/rewards/awaited-groups.ts';
import type { Store } from '../../store/store.ts';
import { codeFile } from '../compiled.ts';

const SDK = pathToFileURL(codeFile('sdk/index.ts')).href;
const AGENT = `import { defineAgent, external } from ${JSON.stringify(SDK)};
export default defineAgent({
  name: 'given',
  scenarios: Array.from({ length: 20 }, (_, index) => ({ id: 'board-' + index })),
  reward: external(),
  async rollout({ scenario, openai, model }) {
    const messages = [{ role: 'user', content: 'Choose a cell of ' + scenario.id }];
    await openai.chat.completions.create({ model, messages, max_tokens: 8 });
  },
});
`;

/** Its file. */
export function writeGivenAgent(folder: string): string {
  const file = join(folder, 'given.mjs');
  writeFileSync(file, AGENT);
  return file;
}

/** Ids. None before the run is in the store. */
export async function awaitedAttempts(store: Store, run: string): Promise<string[]> {
  if ((await store.read(`runs/${run}/run.json`)) === null) return [];
  const groups = await listAwaited(store, run);
  return groups.flatMap(({ place, missing }) => missing.map(({ attempt }) => formatAttemptId({ ...place, attempt })));
}
