/** Endpoints of `temper ui` as data. */
interface UiRequest {
  readonly query: URLSearchParams;
  /** Empty for GET. */
  readonly body: string;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

export type UiReply =
  | { readonly json: object }
  /** Server-sent events, each whole. */
  | { readonly events: AsyncIterable<string> };

export interface Endpoint {
  readonly method: 'GET' | 'POST';
  /** Below `/api/`. */
  readonly path: string;
  /** Starts or changes something, or costs money: refused by `--read-only`. */
  readonly isAction: boolean;
  answer(this: void, request: UiRequest): Promise<UiReply>;
}

/** One server-sent event. JSON has no line ends outside of strings, and in strings they are escaped. */
export function formatEvent(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
