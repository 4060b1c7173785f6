/** Recorded answers and the feedback on them, on a disk and in a bucket. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test, vi } from 'vitest';

import type { Recording } from '../../../../core/contract/records.ts';
import { FileStore } from '../../../../store/bytes/file-store.ts';
import { openS3Store } from '../../../../store/bytes/s3-store.ts';
import {
  closeFeedback,
  giveFeedback,
  MOST_ROWS,
  readRatedConversations,
} from '../../../../store/records/production/feedback.ts';
import { RecordedAnswers } from '../../../../store/records/production/recorded-answers.ts';
import { readProduction } from '../../../../store/records/production/recorded-conversations.ts';
import { parseAnswerId } from '../../../../store/records/production/recording-ids.ts';
import {
  CHUNK_LIMITS,
  findRecording,
  listChunks,
  readRecordings,
  RecordingWriter,
  type NewRecording,
} from '../../../../store/records/production/recordings.ts';
import { Findings } from '../../../../store/records/verify/findings.ts';
import { verifyRecordings } from '../../../../store/records/verify/replays.ts';
import type { Store } from '../../../../store/store.ts';
import { nodeFlags } from '../../../../workers/process/module-path.ts';
import { callOf, user } from '../made-attempt.ts';
import { BUCKET } from '../../../s3-server.ts';
import { sharedS3 } from '../../../shared-s3.ts';
import { temporaryFolder, temporaryStore } from '../../../temporary-folder.ts';

const RUN = 'demo';
const KILLED = fileURLToPath(new URL('record-and-wait.ts', import.meta.url));

const said = (text: string, conversation: string | null = null): NewRecording => ({
  conversation,
  api: 'chat/completions',
  policy: 'demo@3',
  untrainable: null,
  call: callOf([user(text)], `${text}!`, { key: text, tokenIds: [3, 4], logprobs: [-0.5, -1.0625] }),
});

async function all(store: Store): Promise<Recording[]> {
  const found = [];
  for await (const recording of readRecordings(store, RUN)) found.push(recording);
  return found;
}

const texts = async (store: Store) => (await all(store)).map(({ call }) => call.key);

function suite(open: () => Promise<Store>): void {
  let store: Store;
  beforeEach(async () => {
    store = await open();
  });

  test('an answer is read as it was recorded, and found by its id', async () => {
    const writer = new RecordingWriter(store, RUN);
    const recorded = await writer.append(said('hello'));
    expect(recorded).toMatchObject({ ...said('hello'), conversation: `conv_${recorded.id}` });
    expect(await all(store)).toEqual([recorded]);
    expect(await findRecording(store, RUN, recorded.id)).toEqual(recorded);
    expect(await findRecording(store, RUN, '0'.repeat(32))).toBeNull();
    await writer.close();
  });

  test('concurrent writers and new chunks keep one stable order', async () => {
    let now = Date.UTC(2026, 0, 1);
    const small = { ...CHUNK_LIMITS, bytes: 1 };
    const [one, other] = [0, 1].map(() => new RecordingWriter(store, RUN, small, () => (now += 5)));
    for (const text of ['a', 'b', 'c']) await one!.append(said(text));
    await other!.append(said('d'));
    await one!.append(said('e'));
    expect(await texts(store)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(await listChunks(store, RUN)).toHaveLength(5);
    now += CHUNK_LIMITS.ageMs;
    await Promise.all([one!.close(), other!.close()]);
    expect(await texts(store)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('answers that are recorded at once have ids of their own', async () => {
    const writer = new RecordingWriter(store, RUN);
    const recorded = await Promise.all(Array.from({ length: 50 }, () => writer.append(said('same'))));
    expect(new Set(recorded.map(({ id }) => id)).size).toBe(50);
    expect(await all(store)).toHaveLength(50);
    await writer.close();
  });

  test('the last feedback on an answer and on its conversation wins until a run trains it', async () => {
    const writer = new RecordingWriter(store, RUN);
    const [first, silent] = [await writer.append(said('a')), await writer.append(said('b'))];
    const { conversation } = first;
    await writer.append(said('c', conversation));
    const give = (answer: string | null, reward: number) =>
      giveFeedback(store, RUN, conversation, { answer, reward, label: null, comment: null });
    expect((await give(first.id, 0)).outcome).toBe('given');
    expect((await give(first.id, 1)).outcome).toBe('given');
    expect((await give(first.id, 1)).outcome).toBe('repeated');
    await give(null, 0.5);
    const [rated, ...others] = await readRatedConversations(store, RUN);
    expect(others).toEqual([]);
    expect(rated).toMatchObject({ conversation, trainedBy: null, feedback: { reward: 0.5 } });
    expect(rated!.turns.map(({ feedback }) => feedback?.reward ?? null)).toEqual([1, null]);
    expect(rated!.rows.map(({ reward }) => reward)).toEqual([0, 1, 0.5]);
    expect(await closeFeedback(store, RUN, conversation, 'next')).toMatchObject({
      trainedBy: 'next',
      rows: rated!.rows,
    });
    expect(await closeFeedback(store, RUN, conversation, 'later')).toMatchObject({ trainedBy: 'next' });
    expect(await give(first.id, 0)).toMatchObject({ outcome: 'trained', row: { run: 'next' } });
    expect((await readRatedConversations(store, RUN))[0]).toMatchObject({
      trainedBy: 'next',
      feedback: { reward: 0.5 },
    });
    expect(silent.conversation).not.toBe(conversation);
    await writer.close();
  });

  test('feedback and its end that come at once never disagree', async () => {
    const writer = new RecordingWriter(store, RUN);
    const { conversation, id } = await writer.append(said('a'));
    const giving = Array.from({ length: 4 }, (_, reward) =>
      giveFeedback(store, RUN, conversation, { answer: id, reward, label: null, comment: null }),
    );
    const [{ rows }, ...given] = await Promise.all([closeFeedback(store, RUN, conversation, 'next'), ...giving]);
    const accepted = given.flatMap((each) => (each.outcome === 'given' ? [each.row] : []));
    expect(new Set(rows)).toEqual(new Set(accepted));
    await writer.close();
  });

  test("a client's own name of a conversation may be any text", async () => {
    const writer = new RecordingWriter(store, RUN);
    const name = '../../etc/passwd ünïcode';
    await writer.append(said('a', name));
    await giveFeedback(store, RUN, name, { answer: null, reward: 1, label: null, comment: null });
    expect(await readRatedConversations(store, RUN)).toMatchObject([{ conversation: name, feedback: { reward: 1 } }]);
    await writer.close();
  });
}

describe('on a disk', () => {
  const root = temporaryFolder();
  suite(() => Promise.resolve(new FileStore(join(root, randomUUID()))));

  test('a record survives that its writer is killed right after it', async () => {
    const folder = join(root, randomUUID());
    const child = spawn(process.execPath, [...nodeFlags(), KILLED, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    child.kill('SIGKILL');
    await once(child, 'exit');
    const store = new FileStore(folder);
    expect((await all(store)).map(({ id }) => id)).toEqual([line.toString().trim()]);
  });
});

describe('a chunk on a disk', () => {
  const store = temporaryStore();
  const files = () => {
    const folder = join(fileURLToPath(store.uri), 'production', RUN, 'recordings');
    return readdirSync(folder).map((chunk) => join(folder, chunk, '0.journal'));
  };

  test.each([
    ['a payload', 30],
    ['a length', 0],
    ['a checksum', 4],
  ])('that is damaged in %s is read without that record, and tells so', async (_name, at) => {
    await store.removeFolder('production');
    const writer = new RecordingWriter(store, RUN);
    for (const text of ['a', 'b', 'c']) await writer.append(said(text));
    await writer.close();
    const [file = ''] = files();
    const bytes = readFileSync(file);
    const length = 8 + bytes.readUInt32LE(0);
    bytes[length + at]! ^= 1;
    // A torn end is no damage.
    writeFileSync(file, Buffer.concat([bytes, bytes.subarray(0, 20)]));
    expect(await texts(store)).toEqual(['a', 'c']);
    const [chunk = ''] = await listChunks(store, RUN);
    const lost = 8 + readFileSync(file).subarray(length).readUInt32LE(0);
    const { damaged, answers } = await readProduction(store, RUN);
    expect([answers, Object.keys(damaged)]).toEqual([2, [chunk]]);
    if (at > 0) expect(damaged[chunk]).toBe(lost);
    const findings = new Findings(RUN);
    await verifyRecordings(store, RUN, findings);
    expect(findings.problems).toMatchObject([{ object: `production/${RUN}/recordings/${chunk}` }]);
  });

  test('is not read for an unknown answer of its own writer, and by another process once for all that ask', async () => {
    await store.removeFolder('production');
    const [writer, own, other] = [
      new RecordingWriter(store, RUN),
      ...[0, 1].map(() => new RecordedAnswers(store, RUN)),
    ];
    const recorded = await writer.append(said('a'));
    own!.add(recorded);
    const opening = vi.spyOn(store, 'openJournal');
    const unknown = (digit: number) => `chatcmpl-${recorded.id.slice(0, 16)}${String(digit).repeat(16)}`;
    expect(await own!.find(unknown(1))).toBeNull();
    expect(opening).not.toHaveBeenCalled();
    const asked = [1, 2, 3].map((digit) => other!.find(unknown(digit)));
    expect(await other!.find(recorded.id)).toMatchObject({ answer: recorded.id });
    expect(await Promise.all(asked)).toEqual([null, null, null]);
    expect(opening).toHaveBeenCalledTimes(1);
    const later = await writer.append(said('b'));
    expect(await other!.find(later.id)).toMatchObject({ answer: later.id });
    await writer.close();
  });

  test('with the most rows of feedback takes no other, and is still trained', async () => {
    const give = (reward: number) =>
      giveFeedback(store, RUN, 'ticket', { answer: null, reward, label: null, comment: null });
    await give(0);
    const folder = join(fileURLToPath(store.uri), 'production', RUN, 'feedback');
    const [key = ''] = readdirSync(folder);
    const row = readFileSync(join(folder, key, '0.json'));
    for (let number = 1; number < MOST_ROWS; number++) writeFileSync(join(folder, key, `${number}.json`), row);
    expect((await give(0)).outcome).toBe('repeated');
    expect((await give(1)).outcome).toBe('full');
    const { rows, trainedBy } = await closeFeedback(store, RUN, 'ticket', 'next');
    expect([rows.length, trainedBy]).toEqual([MOST_ROWS, 'next']);
  });
});

describe('in a bucket', async () => {
  await sharedS3();
  const spoolFolder = temporaryFolder();
  suite(() => openS3Store({ bucket: BUCKET, prefix: randomUUID() }, { spoolFolder }));
});

test.each([
  ['chatcmpl-', ''],
  ['resp_', ''],
  ['msg_', ''],
  ['fc_', '-0'],
  ['', ''],
])('an id with %s before it is that of its answer', (before, after) => {
  const id = '0123456789abcdef0123456789abcdef';
  expect(parseAnswerId(before + id + after)).toBe(id);
  expect(parseAnswerId(`conv_${id}`)).toBeNull();
});
