/**
 * The vocabulary of a base model that is on this machine, for runs whose store does not have it: Python reads the
 * tokenizer, and a folder of the cache keeps what it found. Nothing is downloaded or installed for it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { TemperError } from '../../core/failures.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { parseVocabulary, type StoredVocabulary } from '../../store/records/vocabulary.ts';
import type { InstallOptions } from '../install/install.ts';
import { hasPythonEnvironment } from '../install/python-environment.ts';
import { runPythonProgram } from './run-program.ts';

export interface LocalModel {
  /** Name that the run records. */
  readonly baseModel: string;
  /** A folder, a `hub:` name or an address of S3; null: a built-in model. */
  readonly source: string | null;
  /** Keeps the vocabulary. */
  readonly folder: string;
}

/** Answers by file; also of those that this machine cannot make, because each try starts a Python. */
const asked = new Map<string, Promise<StoredVocabulary | null>>();

/** Null if Python or the base model is not on this machine. */
export function makeVocabulary(model: LocalModel, options: InstallOptions): Promise<StoredVocabulary | null> {
  const name = hashBytes(new TextEncoder().encode(JSON.stringify([model.baseModel, model.source])));
  const file = join(model.folder, `vocabulary-${name.slice(0, 32)}.json.gz`);
  const found = asked.get(file) ?? readOrMake(file, model, options);
  asked.set(file, found);
  // Whoever asks next, after an interruption say, tries again.
  found.catch(() => asked.delete(file));
  return found;
}

async function readOrMake(file: string, model: LocalModel, options: InstallOptions): Promise<StoredVocabulary | null> {
  if (!existsSync(file) && !(await make(file, model, options))) return null;
  return parseVocabulary(readFileSync(file), file);
}

async function make(file: string, model: LocalModel, options: InstallOptions): Promise<boolean> {
  if (!(await canRunPython(options))) return false;
  mkdirSync(model.folder, { recursive: true });
  const partial = `${file}.${process.pid}.partial`;
  try {
    const flags = { model: model.baseModel, source: model.source, to: partial };
    const env = { ...options.env, HF_HUB_OFFLINE: '1' };
    const { answer } = await runPythonProgram({ ...options, env, name: 'vocabulary', flags, keepsFailure: true });
    if (answer === null) return false;
    renameSync(partial, file);
    return true;
  } finally {
    rmSync(partial, { force: true });
  }
}

async function canRunPython(options: InstallOptions): Promise<boolean> {
  try {
    return await hasPythonEnvironment(options);
  } catch (error) {
    if (error instanceof TemperError) return false;
    throw error;
  }
}
