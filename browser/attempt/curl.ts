/** A recorded call as a command of the terminal: it asks a model the same again. */

/** Longest argument that Linux takes, less some room. */
const MOST_ARGUMENT_BYTES = 120_000;

export interface RecordedRequest {
  readonly messages: readonly unknown[];
  readonly [parameter: string]: unknown;
}

/** Address and key are variables of the shell: nothing secret is copied. */
export function curlCommand(request: RecordedRequest, model: string): string {
  const body = JSON.stringify({ model, ...request });
  const head = [
    'curl "$OPENAI_BASE_URL/chat/completions"',
    '-H "authorization: Bearer $OPENAI_API_KEY"',
    "-H 'content-type: application/json'",
  ].join(' \\\n  ');
  if (new TextEncoder().encode(body).length <= MOST_ARGUMENT_BYTES)
    return `${head} \\\n  --data-raw ${shellQuote(body)}`;
  // A body is one line, so no line of it can end the text early.
  return `${head} \\\n  --data-binary @- <<'TEMPER_BODY'\n${body}\nTEMPER_BODY`;
}

/** One word of a POSIX shell, whatever the text holds. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
