/** How an MCP server fails: for good, for now, or in one call. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { describeServer, type ServerSpec } from './server-spec.ts';

/** The server ended, or cannot be reached, while it was needed. What became of the call is unknown unless it was not sent. */
export class ServerLost extends Error {
  override readonly name = 'ServerLost';
  /** Not the server's own doing: it was killed from outside, or the network was. */
  readonly isOutage: boolean;
  readonly wasSent: boolean;

  constructor(how: string, { isOutage, wasSent = true }: { isOutage: boolean; wasSent?: boolean }) {
    super(how);
    this.isOutage = isOutage;
    this.wasSent = wasSent;
  }
}

/** The server does not know the session, so the call was not made. */
class SessionLost extends ServerLost {
  constructor() {
    super('the server has forgotten the session', { isOutage: false, wasSent: false });
  }
}

/** The call failed, and the model is told why. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed';
}

/** Nothing is known of what the server did. */
export class TimedOut extends CallFailed {}

const NOT_INSTALLED = new Set(['ENOENT', 'EACCES', 'ENOTDIR', 'E2BIG', 'EINVAL']);

/** The error of a start as one of an attempt: wrong for every attempt, or an outage. */
export function asStartFailure(error: unknown, spec: ServerSpec, lastErrors: readonly string[]): TemperError {
  if (error instanceof TemperError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const name = describeServer(spec);
  if (spec.kind === 'command' && NOT_INSTALLED.has(String(code)))
    return badConfig(`${name} cannot be started (${code}); install ${spec.command}, or correct mcp({ command })`);
  const what = spec.kind === 'command' ? 'start' : 'answer';
  if (error instanceof SessionLost)
    return badConfig(`${name} is not there (404); correct mcp({ url }), which often ends in /mcp`);
  const said = lastErrors.length === 0 ? '' : `; its last lines of stderr: ${lastErrors.join(' · ')}`;
  return new TemperError('ProgramFailed', `${name} did not ${what}: ${message}${said}`, { cause: error });
}

interface HttpError {
  readonly name?: string;
  readonly code?: unknown;
  readonly message: string;
}

/** An error of the HTTP transport; null for one of another kind. */
export function asHttpFailure(error: unknown, spec: ServerSpec): Error | null {
  const { code, message } = error as HttpError;
  if (typeof code === 'number' && message.startsWith('Streamable HTTP error')) return ofStatus(code, message, spec);
  if (!(error instanceof TypeError)) return null;
  const cause = (error.cause ?? error) as NodeJS.ErrnoException;
  const how = `the server cannot be reached (${cause.code ?? cause.message})`;
  return new ServerLost(how, { isOutage: true, wasSent: cause.code !== 'ECONNREFUSED' });
}

function ofStatus(code: number, message: string, spec: ServerSpec): Error {
  const name = describeServer(spec);
  if (code === 401 || code === 403)
    return badConfig(`${name} refuses the request (${code}); check headers and keyVariable of mcp`);
  if (code >= 300 && code < 400)
    return badConfig(`${name} redirects (${message}); pass the address that it redirects to`);
  if (code === 404) return new SessionLost();
  if (code >= 500 || code === 429) return new ServerLost(`the server answered with ${code}`, { isOutage: true });
  return new CallFailed(`the server answered with ${code}`);
}
