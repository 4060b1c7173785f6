/** The row of a run, kept up to date by the server's events. */
import type { RunRow } from '../../views/api/run-views.ts';
import type { ServerInfo } from '../../views/api/requests.ts';
import { useData } from '../data.ts';

export function useRunRow(run: string | null): RunRow | null {
  const { value } = useData<readonly RunRow[]>(run === null ? null : 'runs');
  return value?.find((row) => row.run === run) ?? null;
}

export function useServerInfo(): ServerInfo | null {
  return useData<ServerInfo>('info').value;
}
