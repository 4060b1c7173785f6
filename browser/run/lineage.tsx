/** Branches and forks of a run as a tree, and as a list. */
import type { LineageNode, RunView } from '../../views/api/run-views.ts';
import { pathTo } from '../location.ts';
import { Chip, Empty } from '../parts/small.tsx';
import { placeLineage, type PlacedNode } from './place-lineage.ts';

/** Height of a branch's line, in pixels, in the drawing and in the list beside it. */
const ROW = 44;

export function LineageTree({ view: { lineage, row } }: { view: RunView }) {
  if (lineage.length === 0) return <Empty title="This run has no branches" />;
  const placed = placeLineage(lineage);
  const last = Math.max(1, ...placed.map(({ end }) => end));
  return (
    <div class="card lineage">
      <svg
        height={placed.length * ROW}
        role="img"
        aria-label="Branches as a tree; the list beside it says how they are connected"
      >
        {placed.map((node) => (
          <Line
            key={node.id}
            node={node}
            x={(step) => `${((step / last) * 100).toFixed(2)}%`}
            isOwn={node.run === row.run}
            isLeft={isLeft(node, lineage)}
          />
        ))}
      </svg>
      <ol>
        {placed.map((node) => (
          <li key={node.id} style={{ height: `${ROW}px` }}>
            <Label node={node} own={row.run} />
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Another branch of the same run goes on from it, so it does not go on itself. */
function isLeft({ run, branch }: LineageNode, lineage: readonly LineageNode[]): boolean {
  return lineage.some((other) => other.run === run && other.branch > branch);
}

interface LineProps {
  readonly node: PlacedNode;
  readonly x: (step: number) => string;
  readonly isOwn: boolean;
  readonly isLeft: boolean;
}

function Line({ node: { start, end, line, fromLine }, x, isOwn, isLeft: left }: LineProps) {
  const y = (at: number): number => ROW / 2 + at * ROW;
  return (
    <g class={`${isOwn ? 'own' : ''} ${left ? 'left' : ''}`}>
      {fromLine !== null && (
        <>
          <line x1={x(start)} x2={x(start)} y1={y(fromLine)} y2={y(line)} />
          <circle cx={x(start)} cy={y(fromLine)} r="3" />
        </>
      )}
      <line x1={x(start)} x2={x(end)} y1={y(line)} y2={y(line)} />
      <circle cx={x(end)} cy={y(line)} r="4.5" />
    </g>
  );
}

function Label({ node, own }: { node: PlacedNode; own: string }) {
  const isOwn = node.run === own;
  const link = isOwn ? `${pathTo('runs', own, 'steps', node.step)}?branch=${node.branch}` : pathTo('runs', node.run);
  const name = node.branch > 0 ? `${node.run}, branch ${node.branch}` : node.run;
  return (
    <>
      {node.step === 0 && isOwn ? (
        <b>branch {node.branch}</b>
      ) : (
        <a href={`#${link}`}>{isOwn ? `branch ${node.branch}` : name}</a>
      )}
      <Chip kind={node.state}>{node.state}</Chip>
      <span class="dim">{describe(node, own)}</span>
    </>
  );
}

function describe({ from, run, step }: PlacedNode, own: string): string {
  if (from === null) return step === 0 ? 'no step yet' : `up to step ${step}`;
  const [parent, branch] = [from.id.slice(0, from.id.lastIndexOf('/')), from.id.slice(from.id.lastIndexOf('/') + 1)];
  if (parent !== run) return `started from ${parent}, branch ${branch}, step ${from.step}; ${step} steps`;
  return `continues branch ${branch}${parent === own ? '' : ` of ${parent}`} after step ${from.step}, up to step ${step}`;
}
