/** Lists of an MCP server come in pages, each of which names the next one. */
const MAX_PAGES = 100;
const MAX_ITEMS = 1000;

/** A list that has no end is cut off. */
export async function readList<Page extends { readonly nextCursor?: string | undefined }, Item>(
  ask: (asked: { cursor?: string }) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && items.length < MAX_ITEMS; page++) {
    const answer = await ask(cursor === undefined ? {} : { cursor });
    items.push(...itemsOf(answer));
    if (answer.nextCursor === undefined) break;
    cursor = answer.nextCursor;
  }
  return items;
}
