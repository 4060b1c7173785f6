/** Answers of an MCP server, as the text that a model reads. All of it is data: bounded, and well-formed Unicode. */
import type { McpSdk } from './mcp-sdk.ts';

type Results = McpSdk['results'];
type CallResult = Results['tools/call']['_zod']['output'];
type Content = NonNullable<CallResult['content']>[number];
type Resource = Results['resources/read']['_zod']['output']['contents'][number];

export function textOfCall({ content, structuredContent }: CallResult): string {
  if (!content?.length && structuredContent != null) return JSON.stringify(structuredContent);
  return (content ?? []).map(textOfContent).join('\n');
}

function textOfContent({ type, text, resource, uri, name, mimeType, data }: Content): string {
  if (type === 'text') return text ?? '';
  if (type === 'resource' && resource) return textOfResource(resource);
  if (type === 'resource_link') return `[resource ${uri}: ${name}]`;
  return `[${type} ${mimeType ?? 'of unknown type'}, ${data?.length ?? 0} characters of base64]`;
}

export function textOfResource({ uri, mimeType, text, blob }: Resource): string {
  return text ?? `[resource ${uri}, ${mimeType ?? 'unknown type'}, ${blob?.length ?? 0} characters of base64]`;
}

/** The beginning of a text that has more than `most` bytes, with a mark that it was cut. */
export function bound(text: string, most: number): string {
  const whole = text.toWellFormed();
  const bytes = Buffer.from(whole);
  if (bytes.length <= most) return whole;
  // A character that the limit cuts in two is left out.
  let end = most;
  while ((bytes[end]! & 0xc0) === 0x80) end -= 1;
  return `${bytes.toString('utf8', 0, end)}\n[cut: these are the first ${most} of ${bytes.length} bytes]`;
}
