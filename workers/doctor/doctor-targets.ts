/** Checks trackers, exporters of traces and targets of deployments, with the keys of this environment. */
import { checkDeployTarget, checkTarget } from '../../outbound/access/check-access.ts';
import { SERVICES, type ServiceName } from '../../outbound/deploy/targets/services.ts';
import { attempt, type DoctorCheck, type Patient } from './check.ts';

const WITHIN_MS = 10_000;

/** Those that the project names, and targets of deployments whose key is set. */
export function checkTargets({ config, env }: Pick<Patient, 'config' | 'env'>): Promise<DoctorCheck[]> {
  const place = { env, fetch: globalThis.fetch, signal: AbortSignal.timeout(WITHIN_MS) };
  const told = [...config.track, ...config.trace].map((settings) =>
    attempt(settings.name, async () => (await checkTarget(settings, place)) ?? 'writes files of this host'),
  );
  const names = (Object.keys(SERVICES) as ServiceName[]).filter((name) => env[SERVICES[name].keyVariable]);
  const deployed = names.map((name) => attempt(name, () => checkDeployTarget(name, place)));
  return Promise.all([...told, ...deployed]);
}
