/**
 * Plays one attempt with a journal on disk: `hosted-worker.ts STORE ENGINE KILL_AT`. It kills itself once it has been given
 * so many answers of the hosted model (0: never), and otherwise prints the attempt's record; see hosted.test.ts.
 */
import { FileStore } from '../../store/bytes/file-store.ts';
import { FAKE_ENGINE_KEY } from '../fake-engine.ts';
import { playOne, say } from './play.ts';

const [store = '', url = '', killAt = ''] = process.argv.slice(2);
let answers = 0;
const record = await playOne(
  { url, key: FAKE_ENGINE_KEY },
  async (context) => {
    const hosted = context.hosted('openai/gpt-5-mini');
    let heard = '';
    for (let turn = 0; turn < 4; turn++) {
      const digit = await say(context, `turn ${turn} after ${heard}`);
      heard = await say(hosted, `turn ${turn}: what of ${digit}?`);
      answers += 1;
      if (answers === Number(killAt)) process.kill(process.pid, 'SIGKILL');
    }
    return heard.length;
  },
  { segments: await new FileStore(store).openJournal('journal') },
);
process.stdout.write(JSON.stringify(record));
