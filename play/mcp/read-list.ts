/** Lists of an MCP server come in pages, each of which names the next one. */
import { CallFailed } from './server-errors.ts';

const MAX_PAGES = 100;
const MAX_ITEMS = 1000;

/** A list that has no end is cut off; one that leads back to its own pages is refused. */
export async function readList<Page extends { readonly nextCursor?: string | null | undefined }, Item>(
  ask: (asked: { cursor?: string }) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
): Promise<Item[]> {
  const items: Item[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && items.length < MAX_ITEMS; page++) {
    const answer = await ask(cursor === undefined ? {} : { cursor });
    for (const item of itemsOf(answer)) items.push(item);
    // Servers in languages without an absent text end a list by an empty one.
    if (!answer.nextCursor) break;
    cursor = answer.nextCursor;
    if (cursors.has(cursor))
      throw new CallFailed(`its list has the nextCursor ${JSON.stringify(cursor.slice(0, 80))} twice, and so no end`);
    cursors.add(cursor);
  }
  return items;
}
