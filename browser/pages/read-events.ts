/** Server-sent events of a body, whole, however their bytes are cut. */
import type { ChatEvent } from '../../views/api/requests.ts';

export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ChatEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let pending = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (pending + value).split(/\r?\n\r?\n/);
    pending = blocks.pop()!;
    for (const block of blocks) {
      const data = block
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice('data:'.length).trimStart())
        .join('\n');
      if (data !== '') yield JSON.parse(data) as ChatEvent;
    }
  }
}
