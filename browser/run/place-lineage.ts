/** Places of branches in a drawing: those that continue a branch stand below it. */
import type { LineageNode } from '../../views/api/run-views.ts';

export interface PlacedNode extends LineageNode {
  readonly line: number;
  /** Line of the branch that it continues; null for a first one. */
  readonly fromLine: number | null;
  /** Steps from the beginning of all; a fork counts its own steps from 1. */
  readonly start: number;
  readonly end: number;
}

export function placeLineage(nodes: readonly LineageNode[]): PlacedNode[] {
  const known = new Set(nodes.map(({ id }) => id));
  const placed: PlacedNode[] = [];
  const place = (node: LineageNode, fromLine: number | null, before: number): void => {
    if (placed.some(({ id }) => id === node.id)) return;
    const parent = fromLine === null ? null : placed[fromLine]!;
    const isFork = parent !== null && parent.run !== node.run;
    const ownBefore = isFork ? before + node.from!.step : before;
    const start = parent === null ? 0 : before + node.from!.step;
    const line = placed.length;
    placed.push({ ...node, line, fromLine, start, end: Math.max(start, ownBefore + node.step) });
    for (const next of nodes) if (next.from?.id === node.id) place(next, line, ownBefore);
  };
  for (const node of nodes) if (node.from === null || !known.has(node.from.id)) place(node, null, 0);
  return placed;
}
