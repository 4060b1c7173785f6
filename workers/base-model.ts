/** What `--base-model` means: a built-in name, one of temporal.config.ts, a folder, or a name of the Hugging Face hub. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, isAbsolute, join, resolve } from 'node:path';
import { BASE_MODEL_PATTERN } from '../core/contract.ts';
import { BUILT_IN_MODELS, HUB_PREFIX } from '../core/wire-constants.ts';
import { TemperError } from '../core/failures.ts';

export interface BaseModel {
  /** As the run records it. */
  readonly name: string;
  /**
   * Name → folder or `hub:OWNER/NAME[@REVISION]`, for the GPU worker of the local stack: it asks the hub for nothing
   * else. Empty for names that it knows by itself.
   */
  readonly models: Readonly<Record<string, string>>;
}

/** A revision is a branch, a tag or a commit. */
const HUB_NAME = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*(@(?!.*\.\.)[A-Za-z0-9][\w./-]*)?$/;

/** What a model is resolved for. */
interface ModelUse {
  /** There is a chat template in the place of its own. */
  readonly hasTemplate: boolean;
}

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
  const folder = resolve(cwd, text);
  const looksLikePath = isAbsolute(text) || text.startsWith('.') || text.endsWith('/');
  if (looksLikePath || isFolder(folder)) {
    const name = basename(folder);
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) {
      throw new TemperError(
        'BadConfig',
        `the base model's folder must be named with letters, digits and ._-, got ${name}; rename it`,
      );
    }
    return { name, models: { [name]: checkModelFolder(folder, use) } };
  }
  if (HUB_NAME.test(text)) {
    // A branch or a tag is no name that a run could record.
    const name = BASE_MODEL_PATTERN.test(text) ? text : text.split('@', 1)[0]!;
    return { name, models: { [name]: `${HUB_PREFIX}${text}` } };
  }
  const names = [...BUILT_IN_MODELS, ...Object.keys(configured)].join(', ');
  throw new TemperError(
    'BadConfig',
    `unknown base model ${JSON.stringify(text)}: it is neither a folder nor one of ${names}; pass a folder, one of these names, or an OWNER/NAME[@REVISION] of the Hugging Face hub`,
  );
}

function checkSource(source: string, project: string, use: ModelUse): string {
  if (!source.startsWith(HUB_PREFIX)) return checkModelFolder(resolve(project, source), use);
  if (HUB_NAME.test(source.slice(HUB_PREFIX.length))) return source;
  throw new TemperError(
    'BadConfig',
    `a model of the Hugging Face hub must be hub:OWNER/NAME or hub:OWNER/NAME@REVISION, got ${source}; correct models in temporal.config.ts`,
  );
}

function isBuiltIn(name: string): boolean {
  return (BUILT_IN_MODELS as readonly string[]).includes(name);
}

/** A repository of the hub, and what of it is asked for. */
export interface HubModel {
  readonly repository: string;
  /** Null: its default branch. */
  readonly revision: string | null;
}

/** Null where the model comes from elsewhere. */
export function hubModelOf({ name, models }: BaseModel): HubModel | null {
  return parseHubSource(models[name] ?? '');
}

function parseHubSource(source: string): HubModel | null {
  if (!source.startsWith(HUB_PREFIX)) return null;
  const [repository = '', revision = null] = source.slice(HUB_PREFIX.length).split('@', 2);
  return { repository, revision };
}

/** Whether a GPU worker that knows the configuration alone may load it: models of the hub by any name for their repository. */
export function isConfigured({ models }: BaseModel, configured: Readonly<Record<string, string>>): boolean {
  const known = Object.values(configured);
  return Object.entries(models).every(([name, source]) => {
    if (Object.hasOwn(configured, name)) return true;
    const hub = parseHubSource(source);
    return hub !== null && [source, `${HUB_PREFIX}${hub.repository}`].some((each) => known.includes(each));
  });
}

/** Without what only a person may register: for names that are read from a store. */
export function registeredOnly(model: BaseModel, configured: Readonly<Record<string, string>>): BaseModel {
  if (hubModelOf(model) === null || isConfigured(model, configured)) return model;
  return { name: model.name, models: {} };
}

/** Refused here, in a second, rather than by the GPU worker after the installation. */
function checkModelFolder(folder: string, { hasTemplate }: ModelUse): string {
  if (!isFolder(folder))
    throw new TemperError('BadConfig', `the base model's folder ${folder} does not exist; pass an existing one`);
  if (!existsSync(join(folder, 'config.json'))) {
    throw new TemperError(
      'BadConfig',
      `the base model's folder ${folder} has no config.json; pass a folder as transformers saves it`,
    );
  }
  if (!readdirSync(folder).some((file) => file.endsWith('.safetensors'))) {
    throw new TemperError(
      'BadConfig',
      `the base model's folder ${folder} has no .safetensors file (pickled weights are not loaded); convert it to safetensors`,
    );
  }
  if (!hasTemplate && !hasChatTemplate(folder)) {
    throw new TemperError(
      'BadConfig',
      `the base model in ${folder} has no chat template (agents speak in messages); pass one with --chat-template FILE, or add a chat_template.jinja to it`,
    );
  }
  return folder;
}

function hasChatTemplate(folder: string): boolean {
  if (existsSync(join(folder, 'chat_template.jinja')) || existsSync(join(folder, 'chat_template.json'))) return true;
  const file = join(folder, 'tokenizer_config.json');
  if (!existsSync(file)) return false;
  try {
    const { chat_template: template } = JSON.parse(readFileSync(file, 'utf8')) as { chat_template?: unknown };
    return template !== undefined && template !== null;
  } catch (cause) {
    throw new TemperError('BadConfig', `${file} is not valid JSON; restore it`, { cause });
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
