/** Its resources, of each scope, are a folder and a process, which both have the name of their lease. */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineAgent, resource, type ResourceScope, type WorkerSetupContext } from 'temper-rl';
import { processesLike } from '../../processes.ts';

const PLACE = join(process.env['TEMPER_CRASH_FOLDER'] ?? '', 'resources');
const POLL_MS = 20;

function tell(what: string): void {
  mkdirSync(PLACE, { recursive: true });
  appendFileSync(join(PLACE, 'events'), `${what}\n`);
}

function held(scope: ResourceScope) {
  return resource<{ folder: string }>({
    scope,
    setup({ id }: WorkerSetupContext) {
      tell(`+ ${scope} ${id}`);
      const folder = join(PLACE, id);
      mkdirSync(folder);
      spawn('sleep', ['6003'], { argv0: id, detached: true, stdio: 'ignore' }).unref();
      return { folder };
    },
    teardown({ id }) {
      for (const pid of processesLike((line) => line.includes(id))) process.kill(pid, 'SIGKILL');
      rmSync(join(PLACE, id), { recursive: true, force: true });
      tell(`- ${scope} ${id}`);
    },
  });
}

export default defineAgent({
  name: 'resources',
  scenarios: Array.from({ length: 12 }, (_, index) => ({ id: `train-${index}` })),
  evalScenarios: [{ id: 'eval-0' }],
  resources: { server: held('worker'), table: held('group'), desk: held('attempt') },
  async rollout({ scenario, openai, model, resources }) {
    const all = Object.values(resources).every(({ folder }) => existsSync(folder));
    if (!all) throw new Error('a resource is missing while it is in use');
    const messages = [{ role: 'user' as const, content: `${scenario.id}?` }];
    const { choices } = await openai.chat.completions.create({ model, messages, max_tokens: 2 });
    // The test says when training may go on.
    while (!scenario.id.startsWith('eval') && !existsSync(join(PLACE, 'go'))) await sleep(POLL_MS);
    if (!Object.values(resources).every(({ folder }) => existsSync(folder))) throw new Error('a resource was ended');
    return (choices[0]?.message.content ?? '').length;
  },
});
