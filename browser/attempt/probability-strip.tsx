/** One cell a sampled token, the paler the more certain it was: few elements, however many tokens. */
import { useRef, useState } from 'preact/hooks';
import { formatNumber, plural } from '../../core/format.ts';

const [PER_ROW, CELL, PITCH] = [40, 7, 9];
const SHADES = 8;

interface StripProps {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
  /** Tokens beyond those given. */
  readonly leftOut?: number;
}

export function ProbabilityStrip({ tokenIds, logprobs, leftOut = 0 }: StripProps) {
  const [at, setAt] = useState<number | null>(null);
  const svg = useRef<SVGSVGElement>(null);
  if (logprobs.length === 0) return null;
  const width = Math.min(PER_ROW, logprobs.length) * PITCH;
  const height = Math.ceil(logprobs.length / PER_ROW) * PITCH;
  const follow = (event: MouseEvent): void => {
    const box = svg.current!.getBoundingClientRect();
    const scale = width / box.width;
    const column = Math.floor(((event.clientX - box.left) * scale) / PITCH);
    const row = Math.floor(((event.clientY - box.top) * scale) / PITCH);
    const index = row * PER_ROW + column;
    setAt(column < PER_ROW && index < logprobs.length ? index : null);
  };
  return (
    <div class="strip-place">
      <svg
        ref={svg}
        class="probabilities"
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={describeStrip(logprobs)}
        onMouseMove={follow}
        onMouseLeave={() => setAt(null)}
      >
        {shadesOf(logprobs).map((path, shade) => path !== '' && <path key={shade} class={`p-${shade + 1}`} d={path} />)}
      </svg>
      <span class="strip-note note" aria-hidden="true">
        {at !== null && `${tokenIds[at]}: probability ${formatNumber(Math.exp(logprobs[at]!))}`}
        {at === null && leftOut > 0 && `and ${plural(leftOut, 'more token')}`}
      </span>
    </div>
  );
}

function describeStrip(logprobs: readonly number[]): string {
  const least = logprobs.reduce((a, b) => Math.min(a, b));
  return `${plural(logprobs.length, 'sampled token')}; the least probable had probability ${formatNumber(Math.exp(least))}`;
}

/** A path for each shade, with all of its cells. */
function shadesOf(logprobs: readonly number[]): string[] {
  const paths = Array.from({ length: SHADES }, () => '');
  for (const [index, logprob] of logprobs.entries()) {
    const shade = Math.min(SHADES - 1, Math.floor((1 - Math.exp(logprob)) * SHADES));
    const [x, y] = [(index % PER_ROW) * PITCH, Math.floor(index / PER_ROW) * PITCH];
    paths[shade] += `M${x} ${y}h${CELL}v${CELL}h-${CELL}z`;
  }
  return paths;
}
