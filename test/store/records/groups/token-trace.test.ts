/** The file with what a step computed of its tokens, as the trainer writes it: `gpu-worker/tests/training/test_token_trace.py`. */
import { beforeEach, expect, test } from 'vitest';

import type { FileStore } from '../../../../store/bytes/file-store.ts';
import { tokenTraceKey } from '../../../../store/layout.ts';
import { readTokenTrace } from '../../../../store/records/groups/token-trace.ts';
import written from '../token-trace.json' with { type: 'json' };
import { temporaryStore } from '../../../temporary-folder.ts';

const PLACE = { run: 'demo', branch: 0, step: 0 };
const BYTES = Buffer.from(written.base64, 'base64');

let store: FileStore;
beforeEach(() => {
  store = temporaryStore();
});

test('a step without the file has no trace', async () => {
  expect(await readTokenTrace(store, PLACE)).toBe(null);
});

test('columns of each call are found by its place', async () => {
  await store.publish(tokenTraceKey(PLACE), BYTES);
  const trace = (await readTokenTrace(store, PLACE))!;
  expect(trace.isBeforeUpdates).toBe(true);
  const [first, second] = [trace.columnsOf({ group: 0 }, 0, 0)!, trace.columnsOf({ group: 0 }, 0, 2)!];
  expect([...first.logRatios, ...second.logRatios]).toEqual([0.5, -0.25, expect.closeTo(1e-6, 7)]);
  expect([...first.entropies, ...second.entropies]).toEqual([0, 0.125, 2]);
  expect([...first.advantages]).toEqual([expect.closeTo(0.1, 6)]);
  expect([...second.advantages]).toEqual([1.5, 1.5]);
  expect([...first.mask, ...second.mask]).toEqual([1, 1, 0]);
});

test('a group that was dealt to another step is found by that', async () => {
  await store.publish(tokenTraceKey(PLACE), BYTES);
  const trace = (await readTokenTrace(store, PLACE))!;
  const dealt = trace.columnsOf({ group: 5, step: 2, branch: 1 }, 3, 0)!;
  expect([...dealt.logRatios]).toEqual([0, -1.5]);
  expect([...dealt.advantages]).toEqual([0.75, 0.5]);
  expect(trace.columnsOf({ group: 5 }, 3, 0)).toBe(null);
});

test('a ratio beyond half precision is its largest number, and an attempt keeps its number in the record', async () => {
  await store.publish(tokenTraceKey(PLACE), BYTES);
  const columns = (await readTokenTrace(store, PLACE))!.columnsOf({ group: 0 }, 3, 1)!;
  expect([...columns.logRatios]).toEqual([65_504]);
  expect([...columns.entropies]).toEqual([expect.closeTo(Math.PI, 2)]);
});

test('a call that was not trained has no columns', async () => {
  await store.publish(tokenTraceKey(PLACE), BYTES);
  const trace = (await readTokenTrace(store, PLACE))!;
  expect(trace.columnsOf({ group: 0 }, 0, 1)).toBe(null);
  expect(trace.columnsOf({ group: 0 }, 1, 0)).toBe(null);
});

const HEADER_BYTES = Number(BYTES.readBigUInt64LE(0));

test.each([
  ['nothing', Buffer.alloc(0)],
  ['a length alone', BYTES.subarray(0, 8)],
  ['a header alone', BYTES.subarray(0, 8 + HEADER_BYTES)],
  ['all but a byte', BYTES.subarray(0, -1)],
  ['a header that is no JSON', Buffer.concat([BYTES.subarray(0, 8), Buffer.from('x'), BYTES.subarray(9)])],
  ['a length beyond its end', Buffer.concat([Buffer.alloc(8, 0xff), BYTES.subarray(8)])],
  ['calls with more tokens than there are', withCall(5, 1_000_000)],
  ['calls with a negative number of tokens', withCall(5, -1)],
  ['calls with fewer advantages than there are', withCall(6, 0)],
])('%s in its place is a corrupt store that says what to do', async (_, bytes) => {
  await store.publish(tokenTraceKey(PLACE), bytes);
  await expect(readTokenTrace(store, PLACE)).rejects.toThrow(/steps\/0\/tokens\.safetensors .*(delete it|restore it)/);
});

test('a file of a later version is named as such', async () => {
  const later = BYTES.toString('latin1').replace('schema\\":1', 'schema\\":2');
  await store.publish(tokenTraceKey(PLACE), Buffer.from(later, 'latin1'));
  await expect(readTokenTrace(store, PLACE)).rejects.toThrow(/later version/);
});

/** Another number in the first call's row; the file has one tensor of 5 floats before it. */
function withCall(field: number, value: number): Buffer {
  const changed = Buffer.from(BYTES);
  changed.writeInt32LE(value, 8 + HEADER_BYTES + 5 * 4 + field * 4);
  return changed;
}
