/** Of an address or a header: text with a malformed escape stays as it was sent. */
export function decodeEscapes(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
