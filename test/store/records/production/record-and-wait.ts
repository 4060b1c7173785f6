/** A server that is killed: records an answer in the store of its argument, prints its id, and lives on. */
import { FileStore } from '../../../../store/bytes/file-store.ts';
import { RecordingWriter } from '../../../../store/records/production/recordings.ts';

const writer = new RecordingWriter(new FileStore(process.argv[2]!), 'demo');
const { id } = await writer.append({
  conversation: null,
  api: 'messages',
  policy: 'demo@3',
  untrainable: 'redacted',
  call: {
    key: '',
    occurrence: 0,
    label: null,
    request: { messages: [] },
    message: { role: 'assistant' },
    finishReason: 'stop',
    promptTokenIds: [],
    tokenIds: [],
    logprobs: [],
    adapterSha256: null,
  },
});
process.stdout.write(`${id}\n`);
setInterval(() => undefined, 1000);
