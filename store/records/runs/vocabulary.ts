/**
 * The bytes of token ids by the vocabulary of a run's base model: a blob that `vocabulary.json` of the run names. The GPU
 * worker writes both (`gpu-worker/temper_gpu/model/vocabulary.py`). For display, and in no hash.
 */
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';

import { BlobRef } from '../../../core/contract/contract.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { decodeJson } from '../../bytes/json.ts';
import { vocabularyKey } from '../../layout.ts';
import { parseStored, readStored, tolerant } from '../file-schemas.ts';
import type { Store } from '../../store.ts';

export interface StoredVocabulary {
  /** Joined, they are the text as the tokenizer decodes it, special tokens included. Empty for an id without a token. */
  readonly bytesOf: (id: number) => Uint8Array;
  /** Special tokens, and those that structure answers, such as the start of a tool call. */
  readonly isControl: (id: number) => boolean;
  /** The tokenizer drops the space before the first token of a text, which its bytes keep. */
  readonly dropsFirstSpace: boolean;
}

const VocabularyFileSchema = z.looseObject({ schema: z.literal(RECORD_SCHEMA), pieces: tolerant(BlobRef) });
const PiecesSchema = z.looseObject({
  schema: z.literal(RECORD_SCHEMA),
  dropsFirstSpace: z.boolean(),
  control: z.array(z.int()),
  /** Each id's bytes, in latin-1. */
  pieces: z.array(z.string().nullable()),
});

/** Unpacked: the largest vocabularies have 260,000 tokens in 4 MB. */
const MOST_BYTES = 64 * 1024 ** 2;
/** Vocabularies in memory, each of some 10 MB. */
const MOST_KEPT = 4;
const kept = new Map<string, StoredVocabulary>();

/** Null if none is stored. */
export async function readVocabulary(store: Store, run: string): Promise<StoredVocabulary | null> {
  const ref = await findVocabulary(store, run);
  if (ref === null) return null;
  const found = kept.get(ref.sha256) ?? parseVocabulary(await store.getBlob(ref), ref.key);
  kept.delete(ref.sha256);
  kept.set(ref.sha256, found);
  for (const oldest of [...kept.keys()].slice(0, -MOST_KEPT)) kept.delete(oldest);
  return found;
}

/** The blob with the pieces; null if it is not there. */
export async function findVocabulary(store: Store, run: string): Promise<BlobRef | null> {
  const ref = (await readStored(store, vocabularyKey(run), VocabularyFileSchema))?.pieces ?? null;
  return ref === null || (await store.blobBytes(ref)) === null ? null : ref;
}

function parseVocabulary(packed: Uint8Array, name: string): StoredVocabulary {
  const { pieces, control, dropsFirstSpace } = parseStored(PiecesSchema, decodeJson(unpack(packed, name), name), name);
  const controls = new Set(control);
  return {
    bytesOf: (id) => Buffer.from(pieces[id] ?? '', 'latin1'),
    isControl: (id) => controls.has(id),
    dropsFirstSpace,
  };
}

function unpack(packed: Uint8Array, name: string): Uint8Array {
  try {
    return gunzipSync(packed, { maxOutputLength: MOST_BYTES });
  } catch (cause) {
    throw new TemperError('StoreCorrupt', `${name} must be a vocabulary, packed by gzip; restore it from a copy`, {
      cause,
    });
  }
}
