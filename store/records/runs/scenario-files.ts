/**
 * Scenarios of a run, as JSON lines: those for training first. They are one blob, or, where they are many, parts of
 * about a mebibyte that an index names, so that neither writer nor reader holds all of them.
 */
import { z } from 'zod';

import { BlobRef } from '../../../core/contract/contract.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { decodeJson, encodeJson } from '../../bytes/json.ts';
import { scenariosKey, scenarioPartsKey } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { parseStored, tolerant } from '../file-schemas.ts';

/** More is stored in parts. Below it the bytes are one blob, whose hash is in the hashes of all groups. */
export const ONE_BLOB_BYTES = 16 * 1024 ** 2;
const PART_BYTES = 1024 ** 2;

const ScenarioPart = z.looseObject({ blob: tolerant(BlobRef), scenarios: z.number() });
type ScenarioPart = z.output<typeof ScenarioPart>;

const ScenarioIndex = z.looseObject({ schema: z.literal(RECORD_SCHEMA), parts: z.array(ScenarioPart) });

/** A line begins with the scenario's id, or is an example of a chat. */
const INDEX_START = /^\{"schema":\d+,"parts":\[/;

export interface ScenarioFile {
  readonly ref: BlobRef;
  /** All lines, or the index. */
  readonly bytes: Uint8Array;
  /** Null if the lines are in one blob. */
  readonly parts: readonly ScenarioPart[] | null;
}

export async function openScenarioFile(store: Store, ref: BlobRef): Promise<ScenarioFile> {
  const bytes = await store.getBlob(ref);
  const isIndex = INDEX_START.test(new TextDecoder().decode(bytes.subarray(0, 40)));
  return { ref, bytes, parts: isIndex ? parseStored(ScenarioIndex, decodeJson(bytes, ref.key), ref.key).parts : null };
}

/** Blobs that hold a run's scenarios: parts before their index. */
export async function blobsOfScenarios(store: Store, ref: BlobRef): Promise<BlobRef[]> {
  const { parts } = await openScenarioFile(store, ref);
  return [...(parts ?? []).map(({ blob }) => blob), ref];
}

/** Lines from `from` to before `to`; reads the parts alone that hold them. */
export async function* readScenarioLines(store: Store, ref: BlobRef, from = 0, to = Infinity): AsyncGenerator<string> {
  const { bytes, parts } = await openScenarioFile(store, ref);
  if (parts === null) yield* storedLines(bytes).slice(from, to);
  let first = 0;
  for (const { blob, scenarios } of parts ?? []) {
    if (first < to && first + scenarios > from)
      yield* storedLines(await store.getBlob(blob)).slice(Math.max(0, from - first), to - first);
    first += scenarios;
  }
}

/** Lines without empty ones. */
export function storedLines(bytes: Uint8Array): string[] {
  return new TextDecoder()
    .decode(bytes)
    .split('\n')
    .filter((line) => line.trim() !== '');
}

/** Each line ends in a newline. */
export async function putScenarios(store: Store, run: string, lines: AsyncIterable<Uint8Array>): Promise<BlobRef> {
  const parts = new Parts(store);
  for await (const line of lines) await parts.add(line);
  const { whole, index } = await parts.end();
  if (whole !== null) {
    const ref = await store.putBlob(whole);
    await store.replace(scenariosKey(run), whole);
    return ref;
  }
  const bytes = encodeJson({ schema: RECORD_SCHEMA, parts: index });
  const ref = await store.putBlob(bytes);
  // The parts are named where garbage collection looks for names of blobs.
  await store.publish(scenarioPartsKey(run, ref.sha256), bytes);
  return ref;
}

interface Part {
  readonly bytes: Uint8Array;
  readonly scenarios: number;
}

class Parts {
  readonly #store: Store;
  readonly #index: ScenarioPart[] = [];
  /** Parts that are not stored while one blob may do. */
  #waiting: Part[] | null = [];
  #waitingBytes = 0;
  #lines: Uint8Array[] = [];
  #bytes = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  async add(line: Uint8Array): Promise<void> {
    this.#lines.push(line);
    this.#bytes += line.length;
    if (this.#bytes >= PART_BYTES) await this.#finishPart();
  }

  async end(): Promise<{ whole: Uint8Array | null; index: readonly ScenarioPart[] }> {
    if (this.#lines.length > 0) await this.#finishPart();
    return {
      whole: this.#waiting === null ? null : Buffer.concat(this.#waiting.map(({ bytes }) => bytes)),
      index: this.#index,
    };
  }

  async #finishPart(): Promise<void> {
    const part = { bytes: Buffer.concat(this.#lines), scenarios: this.#lines.length };
    [this.#lines, this.#bytes] = [[], 0];
    if (this.#waiting === null) return this.#put(part);
    this.#waiting.push(part);
    this.#waitingBytes += part.bytes.length;
    if (this.#waitingBytes <= ONE_BLOB_BYTES) return;
    const waiting = this.#waiting;
    this.#waiting = null;
    for (const one of waiting) await this.#put(one);
  }

  async #put({ bytes, scenarios }: Part): Promise<void> {
    this.#index.push({ blob: await this.#store.putBlob(bytes), scenarios });
  }
}
