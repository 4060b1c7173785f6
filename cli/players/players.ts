/** Players: checkpoints and base models on the local stack, and hosted models, checked before anything is started. */
import { badConfig } from '../../core/contract/failures.ts';
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import {
  checkBaseUrl,
  findHostedModel,
  readKey,
  type HostedModel,
  type Price,
  nameMaxTokens,
} from '../../play/connections/providers.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { readBaseModel, pinModel, type ModelContext } from '../planning/base-model.ts';
import { readChatTemplate, type ChatTemplate } from '../planning/chat-template.ts';
import { findPlayedBase, findTarget, type CheckpointTarget, type PlayedBase } from './target.ts';

/** Flags of commands that name models. */
interface Flags {
  readonly model: readonly string[];
  readonly 'base-url': string | null;
  readonly 'key-env': string | null;
  readonly price: readonly string[];
  readonly temperature: number | null;
  readonly 'max-tokens': number | null;
  readonly 'chat-template': string | null;
  readonly seed: number | null;
}

export interface PlayersContext extends ModelContext {
  readonly flags: Flags;
}

export interface Player {
  /** Name in tables. */
  readonly name: string;
  /** Name on the server, and the agent's `model`. */
  readonly model: string;
  readonly adapterSha256: string | null;
  readonly checkpoint: CheckpointTarget | null;
  /** Null if the local stack's engine plays it. */
  readonly hosted: HostedModel | null;
  readonly rollout: RolloutConfig;
  readonly place: { readonly seed: number; readonly branch: number; readonly step: number };
  readonly price: Price | null;
}

export interface Players {
  readonly players: readonly Player[];
  /** Base model that the local stack must load; null if any will do. */
  readonly base: PlayedBase | null;
  /** Folders of base models, by name. */
  readonly models: Readonly<Record<string, string>>;
  /** Template of this command, for all players on the local stack. */
  readonly template: ChatTemplate | null;
}

type Found = Pick<Player, 'name' | 'model' | 'checkpoint' | 'hosted'> & { models: Readonly<Record<string, string>> };

export async function findPlayers(context: PlayersContext, store: Store, agent: string): Promise<Players> {
  const { flags, cwd } = context;
  const names = flags.model;
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw badConfig(`--model ${twice} is given twice; pass each model once`);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const find = await createFinder(context, store, template);
  const found: Found[] = [];
  for (const name of names) {
    const player = await find(name);
    const other = found.findIndex((each) => each.name === player.name);
    if (other >= 0)
      throw badConfig(`--model ${names[other]} and --model ${name} are both ${player.name}; pass one of them`);
    found.push(player);
  }
  checkFlags(flags, found);
  const prices = parsePrices(flags.price, names);
  const checkpoints = found.flatMap(({ checkpoint }) => checkpoint ?? []);
  const shared = checkpoints[0] ?? null;
  const toPlayer = (each: Found, index: number): Player => ({
    ...each,
    ...settingsOf({ flags, template, agent }, each, shared),
    adapterSha256: each.checkpoint?.adapterSha256 ?? null,
    price: prices.get(names[index]!) ?? null,
  });
  return {
    players: found.map(toPlayer),
    base: findPlayedBase(checkpoints),
    models: Object.fromEntries(found.flatMap(({ models }) => Object.entries(models))),
    template,
  };
}

async function createFinder(
  context: PlayersContext,
  store: Store,
  template: ChatTemplate | null,
): Promise<(name: string) => Promise<Found>> {
  const { flags, env, project } = context;
  const baseUrl = flags['base-url'] === null ? null : checkBaseUrl('--base-url', flags['base-url']);
  const keyVariable = flags['key-env'];
  const configured = (await loadConfig(project, env)).models;
  return async (name) => {
    // Configured names come first: `openai/gpt-oss-20b` may be a folder here.
    const hosted = Object.hasOwn(configured, name) ? null : findElsewhere(name, baseUrl, keyVariable, env);
    if (hosted !== null) return { name, model: hosted.model, hosted, checkpoint: null, models: {} };
    const checkpoint = await findTarget(store, name);
    if (checkpoint !== null) return { name: checkpoint.model, model: checkpoint.model, hosted, checkpoint, models: {} };
    const base = await pinModel(await readBaseModel(name, context, template !== null), null, context);
    return { name: base.name, model: base.name, hosted, checkpoint, models: base.models };
  };
}

/** Hosted model by name or `--base-url`, which serves every model. `--key-env` applies to models named by URL. */
function findElsewhere(
  name: string,
  baseUrl: string | null,
  keyVariable: string | null,
  env: ModelContext['env'],
): HostedModel | null {
  const byUrl = baseUrl === null ? null : { name, model: name, baseUrl, maxTokensName: null };
  const hosted = byUrl === null ? findHostedModel(name, env) : { ...byUrl, key: null, keyVariable: null };
  if (hosted === null || !isNamedByUrl(hosted, baseUrl)) return hosted;
  return { ...hosted, keyVariable, key: readKey(name, keyVariable, env) };
}

function isNamedByUrl({ name }: HostedModel, baseUrl: string | null): boolean {
  return baseUrl !== null || /^https?:/.test(name);
}

/** Refuses flags without effect. */
function checkFlags(flags: Flags, found: readonly Found[]): void {
  const hosted = found.flatMap((each) => each.hosted ?? []);
  const baseUrl = flags['base-url'];
  if (flags['key-env'] !== null && !hosted.some((each) => isNamedByUrl(each, baseUrl)))
    throw badConfig('--key-env has no effect without --base-url or a model named by URL; pass one of them');
  if (flags['chat-template'] !== null && hosted.length === found.length)
    throw badConfig('--chat-template has no effect on hosted models; leave it out');
  if (flags['max-tokens'] !== null && hosted.length === 0)
    throw badConfig('--max-tokens has no effect without a hosted model; leave it out');
}

interface Asked {
  readonly flags: Flags;
  readonly template: ChatTemplate | null;
  readonly agent: string;
}

/** Settings of a player: those of its own run, else those of the first checkpoint's run, so that players are comparable. */
function settingsOf(
  { flags, template, agent }: Asked,
  { checkpoint: own, model }: Found,
  shared: CheckpointTarget | null,
): Pick<Player, 'rollout' | 'place'> {
  const config = (own ?? shared)?.config ?? defaultRunConfig({ run: agent, agent, baseModel: 'pocket' });
  const { chatTemplateSha256: ofRun, ...rollout } = config.rollout;
  // A run's template belongs to its base model.
  const ofModel = own !== null || config.baseModel === model ? ofRun : undefined;
  const chatTemplateSha256 = template?.sha256 ?? ofModel;
  return {
    rollout: {
      ...rollout,
      temperature: flags.temperature ?? rollout.temperature,
      ...(chatTemplateSha256 === undefined ? {} : { chatTemplateSha256 }),
    },
    place: { branch: 0, step: 0, ...own?.policy, seed: flags.seed ?? config.seed },
  };
}

const EXAMPLE = 'openai/gpt-5=1.25/10 (US dollars per million input and output tokens)';

/** Prices of `--price`, by the model's name in `--model`. */
function parsePrices(texts: readonly string[], models: readonly string[]): ReadonlyMap<string, Price> {
  return new Map(
    texts.map((text) => {
      const [, model, prompt, completion] = /^(.+)=(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text) ?? [];
      if (model === undefined)
        throw badConfig(`--price must be MODEL=IN/OUT, got ${JSON.stringify(text)}; write ${EXAMPLE}`);
      if (!models.includes(model))
        throw badConfig(`--price ${model} has no effect: it is none of the models; pass one of ${models.join(', ')}`);
      return [model, { prompt: Number(prompt), completion: Number(completion) }];
    }),
  );
}

/** Settings of hosted models by flags; null leaves them to the agent. */
export interface AskedSettings {
  readonly temperature: number | null;
  readonly maxTokens: number | null;
}

/** Rewrites request bodies with the flags' settings and this server's field names. */
export function createRewrite(hosted: HostedModel, { temperature, maxTokens }: AskedSettings) {
  return (body: object): object => ({
    ...(temperature !== null && { temperature }),
    ...nameMaxTokens(hosted, body, maxTokens),
  });
}
