/** `temper try` of an agent with roles. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { linesOf } from '../stack.ts';
import { sdkImports, write } from './agents.ts';
import { makeProject, runTry } from './tried-project.ts';

test('a trained role that no rollout calls is refused in one line', async () => {
  const project = await makeProject();
  await write(
    join(project, 'agent.ts'),
    `${sdkImports('defineAgent', 'policy')}
export default defineAgent({
  name: 'pair',
  scenarios: [{ id: 'a' }],
  roles: { asks: policy(), idles: policy('b') },
  async rollout({ roles: { asks: { openai, model } } }) {
    await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'a' }] });
    return { roleRewards: { asks: 1, idles: 0 } };
  },
});
`,
  );
  const { exitCode, stderr } = await runTry(project, ['--scenarios', '1']);
  expect([exitCode, linesOf(stderr).at(-1)]).toEqual([
    2,
    'temper: the role idles of the agent pair must be called by its rollout, got no call in 2 attempts; call roles.idles.openai, or remove the role',
  ]);
});
