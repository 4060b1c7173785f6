/** FOLDER MARK: plays programs that sleep once they were answered there, until it is killed; see program-ends.test.ts. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { command } from '../../sdk/index.ts';
import { startFakeEngine } from '../fake-engine.ts';
import { playAttempts } from './play.ts';

const engine = await startFakeEngine();
const mark = process.argv[3]!;
const [asked, answered] = ['asked', 'answered'].map((name) => join(process.argv[2]!, name)) as [string, string];
setInterval(() => existsSync(asked) && writeFileSync(answered, ''), 20);
// Answered: so the call that started the program has returned, and the leash holds it.
const talk = `touch ${asked}; until [ -e ${answered} ]; do sleep 0.02; done`;
const rollout = command(['/bin/sh', '-c', `${talk}; setsid sleep 4001.${mark} & env -i sleep 4002.${mark}`]);
await playAttempts(engine, rollout, { rollout: { attemptTimeoutMs: 60_000 } });
