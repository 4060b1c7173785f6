/** Resolves `--base-model`: a name (built in, of temporal.config.ts or of the hub), a folder or a bucket's prefix. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, isAbsolute, join, resolve } from 'node:path';
import { BASE_MODEL_PATTERN } from '../../core/contract/contract.ts';
import { BUILT_IN_MODELS, HUB_PREFIX, S3_NAMED, S3_SCHEME } from '../../core/contract/wire-constants.ts';
import { badConfig } from '../../core/contract/failures.ts';

export interface BaseModel {
  /** Name that the run records. */
  readonly name: string;
  /**
   * Sources of models for the local stack's GPU worker, which loads no others: name → folder,
   * `hub:OWNER/NAME[@REVISION]` or `s3://BUCKET/PREFIX[@HASH]`. Empty for names that it knows itself.
   */
  readonly models: Readonly<Record<string, string>>;
}

const GGUF = '.gguf';

const CONVERT = [
  'import sys, torch, transformers as t',
  'd, f, to = sys.argv[1:]',
  't.AutoTokenizer.from_pretrained(d, gguf_file=f).save_pretrained(to)',
  't.AutoModelForCausalLM.from_pretrained(d, gguf_file=f, dtype=torch.float32, quantization_config=t.GgufConfig(dequantize=True)).to(torch.bfloat16).save_pretrained(to)',
].join('; ');

/** A revision is a branch, a tag or a commit. */
const HUB_NAME = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*(@(?!.*\.\.)[A-Za-z0-9][\w./-]*)?$/;

/** Options that limit a model's sources. */
interface ModelUse {
  /** A chat template replaces the model's own. */
  readonly hasTemplate: boolean;
}

/** Prefix of a model in a bucket; the hash of a listing may follow. */
const S3_PLACE = /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[A-Za-z0-9][\w.-]*)+(@[0-9a-f]{40})?$/;

export function resolveBaseModel(
  text: string,
  cwd: string,
  project: string,
  configured: Readonly<Record<string, string>>,
  use: ModelUse = { hasTemplate: false },
): BaseModel {
  const named = Object.hasOwn(configured, text) ? configured[text]! : null;
  if (named !== null) return { name: text, models: { [text]: checkSource(named, project, use) } };
  if (isBuiltIn(text)) return { name: text, models: {} };
  if (text.startsWith(S3_SCHEME)) return modelInBucket(text.replace(/\/$/, ''));
  const folder = resolve(cwd, text);
  if (looksLikePath(text) || existsSync(folder)) return modelInFolder(folder, use);
  if (isNamedInBucket(text)) return modelInBucket(sourceOfName(text));
  if (HUB_NAME.test(text)) {
    // Runs can't record branches or tags.
    const name = BASE_MODEL_PATTERN.test(text) ? text : text.split('@', 1)[0]!;
    return { name, models: { [name]: `${HUB_PREFIX}${text}` } };
  }
  const names = [...BUILT_IN_MODELS, ...Object.keys(configured)].join(', ');
  throw badConfig(
    `unknown base model ${JSON.stringify(text)}: it is neither a folder nor one of ${names}; pass a folder, one of these names, an OWNER/NAME[@REVISION] of the Hugging Face hub, or s3://BUCKET/PREFIX`,
  );
}

function looksLikePath(text: string): boolean {
  return isAbsolute(text) || text.startsWith('.') || text.endsWith('/') || isGguf(text);
}

function isGguf(name: string): boolean {
  return extname(name).toLowerCase() === GGUF;
}

function modelInFolder(folder: string, use: ModelUse): BaseModel {
  refuseFile(folder);
  const name = basename(folder);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) {
    throw badConfig(`the base model's folder must be named with letters, digits and ._-, got ${name}; rename it`);
  }
  return { name, models: { [name]: checkModelFolder(folder, use) } };
}

function modelInBucket(source: string): BaseModel {
  const name = nameOfSource(checkPlace(source));
  return { name, models: { [name]: source } };
}

function checkPlace(source: string): string {
  if (S3_PLACE.test(source) && BASE_MODEL_PATTERN.test(nameOfSource(source))) return source;
  throw badConfig(
    `a base model in a bucket must be s3://BUCKET/PREFIX, each part of the prefix made of letters, digits and ._-, got ${source.replace(/\/\/[^/@]*@/, '//…@')}; correct it, or copy the model there`,
  );
}

/** Name that a run records. */
function nameOfSource(source: string): string {
  return source.replace(S3_SCHEME, S3_NAMED);
}

/** Names of the hub have two parts. */
function isNamedInBucket(name: string): boolean {
  return name.startsWith(S3_NAMED) && name.split('/').length > 2;
}

/** Source of a model with a name that runs record. */
export function sourceOfName(name: string): string {
  return isNamedInBucket(name) ? name.replace(S3_NAMED, S3_SCHEME) : `${HUB_PREFIX}${name}`;
}

function checkSource(source: string, project: string, use: ModelUse): string {
  if (source.startsWith(S3_SCHEME)) return checkPlace(source);
  if (!source.startsWith(HUB_PREFIX)) return checkModelFolder(resolve(project, source), use);
  if (HUB_NAME.test(source.slice(HUB_PREFIX.length))) return source;
  throw badConfig(
    `a model of the Hugging Face hub must be hub:OWNER/NAME or hub:OWNER/NAME@REVISION, got ${source}; correct models in temporal.config.ts`,
  );
}

export function isBuiltIn(name: string): boolean {
  return (BUILT_IN_MODELS as readonly string[]).includes(name);
}

/** A model that is downloaded, and what of it is asked for. */
export interface RemoteModel {
  /** OWNER/NAME of the hub, or s3/BUCKET/PREFIX. */
  readonly repository: string;
  /** Null: the hub's default branch, or what is in the bucket now. */
  readonly revision: string | null;
}

/** Null for a folder, and for a built-in model. */
export function remoteModelOf({ name, models }: BaseModel): RemoteModel | null {
  return parseSource(models[name] ?? '');
}

function parseSource(source: string): RemoteModel | null {
  const isInBucket = source.startsWith(S3_SCHEME);
  if (!isInBucket && !source.startsWith(HUB_PREFIX)) return null;
  const name = isInBucket ? nameOfSource(source) : source.slice(HUB_PREFIX.length);
  const [repository = '', revision = null] = name.split('@', 2);
  return { repository, revision };
}

/** Whether a GPU worker that knows the configuration alone may load it: downloaded models by any name for their repository. */
export function isConfigured({ models }: BaseModel, configured: Readonly<Record<string, string>>): boolean {
  const known = Object.values(configured);
  return Object.entries(models).every(([name, source]) => {
    if (Object.hasOwn(configured, name)) return true;
    const remote = parseSource(source);
    return remote !== null && [source, sourceOfName(remote.repository)].some((each) => known.includes(each));
  });
}

/** Without what only a person may register: for names that are read from a store. */
export function registeredOnly(model: BaseModel, configured: Readonly<Record<string, string>>): BaseModel {
  if (remoteModelOf(model) === null || isConfigured(model, configured)) return model;
  return { name: model.name, models: {} };
}

/** Refused here, in a second, rather than by the GPU worker after the installation. */
function checkModelFolder(folder: string, { hasTemplate }: ModelUse): string {
  refuseFile(folder);
  if (!isFolder(folder)) throw badConfig(`the base model's folder ${folder} does not exist; pass an existing one`);
  if (!existsSync(join(folder, 'config.json'))) {
    throw badConfig(`the base model's folder ${folder} has no config.json; pass a folder as transformers saves it`);
  }
  if (!readdirSync(folder).some(isSafetensors)) {
    throw badConfig(
      `the base model's folder ${folder} has no .safetensors file (pickled weights are not loaded); convert it to safetensors`,
    );
  }
  if (!hasTemplate && !hasChatTemplate(folder)) {
    throw badConfig(
      `the base model in ${folder} has no chat template (agents speak in messages); pass one with --chat-template FILE, or add a chat_template.jinja to it`,
    );
  }
  return folder;
}

/** A file, or a folder with packed weights alone. */
function refuseFile(path: string): void {
  if (!existsSync(path)) return;
  const files = isFolder(path) ? readdirSync(path) : null;
  const packed = files?.find(isGguf);
  if (files === null && isGguf(path)) refuseGguf(path);
  if (packed !== undefined && !files!.some(isSafetensors)) refuseGguf(join(path, packed));
  if (files === null)
    throw badConfig(`a base model must be a folder, got the file ${path}; pass the folder that it is in`);
}

function hasChatTemplate(folder: string): boolean {
  if (existsSync(join(folder, 'chat_template.jinja')) || existsSync(join(folder, 'chat_template.json'))) return true;
  const file = join(folder, 'tokenizer_config.json');
  if (!existsSync(file)) return false;
  try {
    const { chat_template: template } = JSON.parse(readFileSync(file, 'utf8')) as { chat_template?: unknown };
    return template !== undefined && template !== null;
  } catch (cause) {
    throw badConfig(`${file} is not valid JSON; restore it`, { cause });
  }
}

const isSafetensors = (file: string) => file.endsWith('.safetensors');

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** A model as llama.cpp packs it: nothing that a run could load or train. What a person does with it instead. */
function refuseGguf(file: string): never {
  const name = basename(file, extname(file));
  const places = [dirname(file), basename(file), `./${name}`].map(shellWord).join(' ');
  throw badConfig(
    `a base model must be a folder (as transformers saves it) with .safetensors files, got the GGUF file ${file}; name the model that it was made from, or convert it and pass --base-model ./${name}: python -m pip install gguf torch 'transformers>=5.23' && python -c '${CONVERT}' ${places} (GGUF files do not hold how a tokenizer splits text: compare pre_tokenizer in ./${name}/tokenizer.json with the original model's and correct it, or the model sees other tokens than it was trained on)`,
  );
}

function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
