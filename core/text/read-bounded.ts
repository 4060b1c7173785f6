/** Answers of other systems, which may send more than this process has memory for. */

/** More than any page of rows or spans has. */
const MOST_BYTES = 64 * 1024 ** 2;
/** Of a refusal, the beginning says why. */
const REFUSAL_BYTES = 1024 ** 2;

/** The body of a response; throws if it has more than `mostBytes`. That of a refusal is cut off. */
export async function readBounded(response: Response, mostBytes = MOST_BYTES): Promise<Uint8Array> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  // A loop that is left ends the transfer.
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (!response.ok && bytes >= REFUSAL_BYTES) break;
    if (bytes > mostBytes) throw new Error(`its answer has more than ${mostBytes / 1024 ** 2} MiB`);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

export async function readBoundedText(response: Response, mostBytes = MOST_BYTES): Promise<string> {
  return new TextDecoder().decode(await readBounded(response, mostBytes));
}
