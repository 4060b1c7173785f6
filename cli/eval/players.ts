/** Who plays: checkpoints and base models on the local stack, hosted models anywhere; each checked before anything is started. */
import type { RolloutConfig } from '../../core/contract.ts';
import { defaultRunConfig } from '../../core/run-defaults.ts';
import {
  checkBaseUrl,
  findHostedModel,
  readKey,
  type HostedModel,
  type Price,
  nameMaxTokens,
} from '../../play/connections/providers.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config.ts';
import { readBaseModel, settleBaseModel, type ModelContext } from '../planning/base-model.ts';
import { readChatTemplate, type ChatTemplate } from '../planning/chat-template.ts';
import { UsageError } from '../command-line/errors.ts';
import type { EvalContext } from './command.ts';
import { findPlayedBase, type PlayedBase } from './played-base.ts';
import { findTarget, type CheckpointTarget } from './target.ts';

type Flags = Pick<
  EvalContext['flags'],
  'model' | 'base-url' | 'key-env' | 'price' | 'temperature' | 'max-tokens' | 'chat-template' | 'seed'
>;

/** Whoever names models by flags: an evaluation, or a few attempts to look at. */
export interface PlayersContext extends ModelContext {
  readonly flags: Flags;
}

export interface Player {
  /** As tables show it. */
  readonly name: string;
  /** As the server calls it; what the agent gets as `model`. */
  readonly model: string;
  readonly adapterSha256: string | null;
  readonly checkpoint: CheckpointTarget | null;
  /** Null where the local stack's engine plays it. */
  readonly hosted: HostedModel | null;
  readonly rollout: RolloutConfig;
  readonly place: { readonly seed: number; readonly branch: number; readonly step: number };
  readonly price: Price | null;
}

export interface Players {
  readonly players: readonly Player[];
  /** That the local stack's engine must have; null where any will do. */
  readonly base: PlayedBase | null;
  /** Of base models that are folders: name → folder. */
  readonly models: Readonly<Record<string, string>>;
  /** Given with this command, for all that play on the local stack. */
  readonly template: ChatTemplate | null;
}

type Found = Pick<Player, 'name' | 'model' | 'checkpoint' | 'hosted'> & { models: Readonly<Record<string, string>> };

export async function findPlayers(context: PlayersContext, store: Store, agent: string): Promise<Players> {
  const { flags, cwd } = context;
  const names = flags.model;
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new UsageError(`--model ${twice} is given twice; pass each model once`);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const find = await createFinder(context, store, template);
  const found: Found[] = [];
  for (const name of names) {
    const player = await find(name);
    const other = found.findIndex((each) => each.name === player.name);
    if (other >= 0)
      throw new UsageError(`--model ${names[other]} and --model ${name} are both ${player.name}; pass one of them`);
    found.push(player);
  }
  checkFlags(flags, found);
  const prices = parsePrices(flags.price, names);
  const checkpoints = found.flatMap(({ checkpoint }) => checkpoint ?? []);
  const shared = checkpoints[0] ?? null;
  const settle = (each: Found, index: number): Player => ({
    ...each,
    ...settingsOf({ flags, template, agent }, each, shared),
    adapterSha256: each.checkpoint?.adapterSha256 ?? null,
    price: prices.get(names[index]!) ?? null,
  });
  return {
    players: found.map(settle),
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
    // A name of one's own comes first: `openai/gpt-oss-20b` may be a folder here.
    const hosted = Object.hasOwn(configured, name) ? null : findElsewhere(name, baseUrl, keyVariable, env);
    if (hosted !== null) return { name, model: hosted.model, hosted, checkpoint: null, models: {} };
    const checkpoint = await findTarget(store, name);
    if (checkpoint !== null) return { name: checkpoint.model, model: checkpoint.model, hosted, checkpoint, models: {} };
    const base = await settleBaseModel(await readBaseModel(name, context, template), null, context);
    return { name: base.name, model: base.name, hosted, checkpoint, models: base.models };
  };
}

/** `--base-url` is every model's server; a key that is named is for whoever is named by URL. */
function findElsewhere(
  name: string,
  baseUrl: string | null,
  keyVariable: string | null,
  env: EvalContext['env'],
): HostedModel | null {
  const byUrl = baseUrl === null ? null : { name, model: name, baseUrl, maxTokensName: null };
  const hosted = byUrl === null ? findHostedModel(name, env) : { ...byUrl, key: null, keyVariable: null };
  if (hosted === null || !isNamedByUrl(hosted, baseUrl)) return hosted;
  return { ...hosted, keyVariable, key: readKey(name, keyVariable, env) };
}

function isNamedByUrl({ name }: HostedModel, baseUrl: string | null): boolean {
  return baseUrl !== null || /^https?:/.test(name);
}

/** No option without effect. */
function checkFlags(flags: Flags, found: readonly Found[]): void {
  const hosted = found.flatMap((each) => each.hosted ?? []);
  const baseUrl = flags['base-url'];
  if (flags['key-env'] !== null && !hosted.some((each) => isNamedByUrl(each, baseUrl)))
    throw new UsageError('--key-env has no effect without --base-url or a model named by URL; pass one of them');
  if (flags['chat-template'] !== null && hosted.length === found.length)
    throw new UsageError('--chat-template has no effect on hosted models; leave it out');
  if (flags['max-tokens'] !== null && hosted.length === 0)
    throw new UsageError('--max-tokens has no effect without a hosted model; leave it out');
}

interface Asked {
  readonly flags: Flags;
  readonly template: ChatTemplate | null;
  readonly agent: string;
}

/** A checkpoint plays as its run did; the others as the first checkpoint's run, so that one thing is compared. */
function settingsOf(
  { flags, template, agent }: Asked,
  { checkpoint: own, model }: Found,
  shared: CheckpointTarget | null,
): Pick<Player, 'rollout' | 'place'> {
  const config = (own ?? shared)?.config ?? defaultRunConfig({ run: agent, agent, baseModel: 'pocket' });
  const { chatTemplateSha256: ofRun, ...rollout } = config.rollout;
  // A run's template is for its base model.
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

/** By the model's name, as `--model` says it. */
function parsePrices(texts: readonly string[], models: readonly string[]): ReadonlyMap<string, Price> {
  return new Map(
    texts.map((text) => {
      const [, model, prompt, completion] = /^(.+)=(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text) ?? [];
      if (model === undefined)
        throw new UsageError(`--price must be MODEL=IN/OUT, got ${JSON.stringify(text)}; write ${EXAMPLE}`);
      if (!models.includes(model))
        throw new UsageError(`--price ${model} has no effect: it is none of the models; name it with --model`);
      return [model, { prompt: Number(prompt), completion: Number(completion) }];
    }),
  );
}

/** What the person says of hosted models; null leaves it to the agent. */
export interface AskedSettings {
  readonly temperature: number | null;
  readonly maxTokens: number | null;
}

/** The agent's own words, but for what the person asked for and for what this server calls otherwise. */
export function createRewrite(hosted: HostedModel, { temperature, maxTokens }: AskedSettings) {
  return (body: object): object => ({
    ...(temperature !== null && { temperature }),
    ...nameMaxTokens(hosted, body, maxTokens),
  });
}
