/** The resources of attempts that are played together: one set for each attempt, and one for all at a scenario. */
import type { LeasePlace } from '../../store/records/groups/leases.ts';
import { AgentResources } from './agent-resources.ts';
import { unlessAborted } from './end-lease.ts';
import type { LeaseHolder } from './lease-holder.ts';
import type { Resources } from './resource.ts';
import { ResourceSet } from './resource-set.ts';

export interface ResourcefulAttempt {
  readonly attempt: number;
  readonly scenarioIndex: number;
  readonly scenario: { readonly id: string };
}

/** The resources of one attempt. */
export interface AttemptResources {
  readonly values: Readonly<Record<string, unknown>>;
  /** Throws where others may have ended them: a retry on another worker, or whoever took this process for dead. */
  check(isFresh: () => boolean): Promise<void>;
  /** Never rejects. */
  end(): Promise<void>;
}

export interface ResourcesProgress {
  settingUp: number;
  ending: number;
}

interface Group {
  attemptsLeft: number;
  set: Promise<ResourceSet> | null;
}

export interface PlaceOptions {
  readonly agent: { readonly name: string; readonly resources?: Resources };
  readonly planned: readonly ResourcefulAttempt[];
  /** Default: with no leases, closed with these attempts. */
  readonly resources?: AgentResources | null;
  /** A retry has the same, and finds what these attempts held; null outside of runs. */
  readonly leasePlace?: LeasePlace | null;
}

/** Null for an agent without resources. */
export function openResources(options: PlaceOptions, signal: AbortSignal): PlaceResources | null {
  return options.agent.resources === undefined ? null : new PlaceResources(options, options.agent.resources, signal);
}

export class PlaceResources {
  readonly #owner: AgentResources;
  readonly #isOwnersEnd: boolean;
  readonly #place: LeasePlace | null;
  readonly #signal: AbortSignal;
  readonly #groups = new Map<number, Group>();
  #settingUp = 0;
  #ending = 0;

  /** `signal` ends setups: no further attempt begins. */
  constructor(
    { agent, planned, resources: owner, leasePlace }: PlaceOptions,
    resources: Resources,
    signal: AbortSignal,
  ) {
    this.#owner = owner ?? new AgentResources({ agent: agent.name, resources, leases: null });
    this.#isOwnersEnd = owner === undefined || owner === null;
    this.#place = leasePlace ?? null;
    this.#signal = signal;
    for (const { scenarioIndex } of planned) {
      const attemptsLeft = (this.#groups.get(scenarioIndex)?.attemptsLeft ?? 0) + 1;
      this.#groups.set(scenarioIndex, { attemptsLeft, set: null });
    }
  }

  /** Before the first attempt: what an earlier try of the activity left is ended. */
  async begin(): Promise<void> {
    if (this.#place !== null) await this.#owner.endLeft(this.#place);
  }

  async setUp(planned: ResourcefulAttempt): Promise<AttemptResources> {
    const group = this.#groups.get(planned.scenarioIndex)!;
    this.#settingUp += 1;
    try {
      const holder = await this.#owner.holder();
      const worker = await unlessAborted(this.#signal, () => this.#owner.worker());
      group.set ??= this.#setUpOne('group', planned, holder, worker);
      const own = await this.#setUpOne('attempt', planned, holder, await group.set);
      return {
        values: own.values,
        check: (isFresh) => this.#owner.checkHolder(holder, isFresh),
        end: async () => {
          this.#ending += 1;
          await own.end();
          await leave(group);
          this.#ending -= 1;
        },
      };
    } catch (error) {
      await leave(group);
      throw error;
    } finally {
      this.#settingUp -= 1;
    }
  }

  /** Attempts that wait for their resources; null if none does. */
  progress(): ResourcesProgress | null {
    const [settingUp, ending] = [this.#settingUp, this.#ending];
    return settingUp + ending === 0 ? null : { settingUp, ending };
  }

  /** Ends what attempts share of which some never began. Never rejects. */
  async close(): Promise<void> {
    await Promise.all([...this.#groups.values()].map(endShared));
    if (this.#isOwnersEnd) await this.#owner.close();
  }

  #setUpOne(
    scope: 'group' | 'attempt',
    { attempt, scenario }: ResourcefulAttempt,
    holder: LeaseHolder | null,
    wider: ResourceSet,
  ): Promise<ResourceSet> {
    const place = this.#place;
    const facts = { scope, holder: holder?.id ?? null, place, scenario: scenario.id };
    return ResourceSet.setUp({
      resources: this.#owner.of(scope),
      frame: { resources: wider.values, scenario: structuredClone(scenario), signal: this.#signal },
      createLease: (name) => this.#owner.createLease({ name, ...facts, ...(scope === 'attempt' ? { attempt } : {}) }),
      log: this.#owner.log,
      keep: (held, failure) => this.#owner.keep(held, failure),
    });
  }
}

/** The last attempt at a scenario ends what they shared. */
async function leave(group: Group): Promise<void> {
  group.attemptsLeft -= 1;
  if (group.attemptsLeft === 0) await endShared(group);
}

async function endShared(group: Group): Promise<void> {
  const { set } = group;
  group.set = null;
  await (await set?.catch(() => null))?.end();
}
