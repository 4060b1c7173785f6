/** Types and helpers that the doctor's checks share. */
import type { TemperConfig } from '../config/config.ts';
import type { TemporalTarget } from '../connection/target.ts';
import type { ProjectFolders } from '../project/folders.ts';

export interface DoctorOptions {
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  /** Names of agents whose queues should be polled. */
  readonly agents: readonly string[];
}

export interface Patient extends DoctorOptions {
  readonly config: TemperConfig;
  readonly folders: ProjectFolders;
  readonly target: TemporalTarget | null;
}

/** One thing that was looked at. */
export interface DoctorCheck {
  readonly name: string;
  /** Null if it could not be looked at, or concerns nothing that runs now. */
  readonly ok: boolean | null;
  readonly detail: string;
  /** Remedy; null if none is needed. */
  readonly remedy: string | null;
}

export const passed = (name: string, detail: string): DoctorCheck => ({ name, ok: true, detail, remedy: null });
export const failed = (name: string, detail: string, remedy: string): DoctorCheck => ({
  name,
  ok: false,
  detail,
  remedy,
});
export const unknown = (name: string, detail: string, remedy: string): DoctorCheck => ({
  name,
  ok: null,
  detail,
  remedy,
});
export const notRunning = (name: string): DoctorCheck =>
  unknown(name, 'no local stack is running in this project', 'temper dev starts one, temper train does so by itself');

/** A check that throws has failed: its message names the remedy. */
export async function attempt(name: string, check: () => Promise<string>): Promise<DoctorCheck> {
  try {
    return passed(name, await check());
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const [detail = message, ...remedy] = message.split('; ');
    return failed(name, detail, remedy.join('; ') || 'see the log files in .temper/logs');
  }
}
