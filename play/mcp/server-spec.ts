/** An MCP server as data: how it is reached, and the limits of what it may do. */

interface Common {
  /** Its process or session belongs to one attempt. */
  readonly isolate: boolean;
  readonly startTimeoutMs: number;
  readonly callTimeoutMs: number;
  /** How long it may stay without an attempt that uses it. */
  readonly idleMs: number;
}

export interface CommandSpec extends Common {
  readonly kind: 'command';
  readonly command: string;
  readonly args: readonly string[];
  /** Texts by name. */
  readonly env: Readonly<Record<string, string>>;
  /** Names of variables of this process that are passed on: secrets. */
  readonly passed: readonly string[];
}

export interface UrlSpec extends Common {
  readonly kind: 'url';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The variable of this process with a bearer token; null for none. */
  readonly keyVariable: string | null;
}

export type ServerSpec = CommandSpec | UrlSpec;

const SHOWN_CHARACTERS = 80;

/** Short form for messages: without what may be a key. */
export function describeServer(spec: ServerSpec): string {
  if (spec.kind === 'url') {
    const { origin, pathname } = new URL(spec.url);
    return `the MCP server ${origin}${pathname}`;
  }
  const line = [spec.command, ...spec.args].join(' ').replaceAll(/\s+/g, ' ').trim();
  return `the MCP server ${line.length <= SHOWN_CHARACTERS ? line : `${line.slice(0, SHOWN_CHARACTERS)}…`}`;
}
