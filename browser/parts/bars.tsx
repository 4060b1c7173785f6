/** Small pictures of numbers, as SVG. */
import { formatNumber, plural } from '../../core/reports/format.ts';
import { largest, smallest } from '../../core/numbers/statistics.ts';

interface HistogramProps {
  readonly values: readonly number[];
  /** Name of the values, for the label: `rewards`. */
  readonly what: string;
  readonly bins: number;
  readonly height: number;
  /** Range of the axis. */
  readonly range: readonly [number, number];
}

const UNIT = 8;

export function Histogram(props: HistogramProps) {
  const { values, what, range } = props;
  if (values.length === 0) return <p class="note">no {what}</p>;
  return (
    <figure class="histogram-figure">
      <Bins {...props} />
      <figcaption class="note ends">
        <span>{formatNumber(range[0])}</span>
        <span>{formatNumber(range[1])}</span>
      </figcaption>
    </figure>
  );
}

/** A histogram without its axis. `says`: the numbers, where they are few. */
export function Bins({ values, what, bins, height, range: [low, high], says }: HistogramProps & { says?: string }) {
  const counts = countBins(values, low, high, bins);
  const most = Math.max(...counts);
  const edge = (bin: number): number => low + ((high - low) * bin) / bins;
  return (
    <svg
      class="histogram"
      viewBox={`0 0 ${bins * UNIT} ${height}`}
      height={height}
      preserveAspectRatio="none"
      role="img"
      aria-label={says ?? `${plural(values.length, 'value')} of ${what}, ${formatNumber(low)} to ${formatNumber(high)}`}
    >
      {counts.map((count, bin) => {
        const size = count === 0 ? 0 : Math.max(2, (count / most) * (height - 2));
        return (
          <rect key={bin} x={bin * UNIT + 1} y={height - size} width={UNIT - 2} height={size}>
            <title>{`${plural(count, 'attempt')}, ${formatNumber(edge(bin))} to ${formatNumber(edge(bin + 1))}`}</title>
          </rect>
        );
      })}
      <line x1="0" x2={bins * UNIT} y1={height} y2={height} />
    </svg>
  );
}

function countBins(values: readonly number[], low: number, high: number, bins: number): number[] {
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of values) {
    const share = high === low ? 0.5 : (value - low) / (high - low);
    const bin = Math.min(bins - 1, Math.max(0, Math.floor(share * bins)));
    counts[bin]! += 1;
  }
  return counts;
}

const SPARK = { width: 100, height: 24, edge: 2 };

/** Curve without axes; its label says the numbers. */
export function Sparkline({ values, what }: { values: readonly (number | null)[]; what: string }) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return <span class="faint">–</span>;
  const [low, high] = [smallest(known), largest(known)];
  const x = (at: number): number => SPARK.edge + (at / Math.max(1, values.length - 1)) * (SPARK.width - 2 * SPARK.edge);
  const y = (value: number): number => {
    const share = high === low ? 0.5 : (value - low) / (high - low);
    return SPARK.height - SPARK.edge - share * (SPARK.height - 2 * SPARK.edge);
  };
  const points = values.flatMap((value, at) => (value === null ? [] : [[x(at), y(value)] as const]));
  const [lastX, lastY] = points.at(-1)!;
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${SPARK.width} ${SPARK.height}`}
      width={SPARK.width}
      height={SPARK.height}
      role="img"
      aria-label={`${what} from ${formatNumber(known[0])} to ${formatNumber(known.at(-1))}, lowest ${formatNumber(low)}, highest ${formatNumber(high)}`}
    >
      <path d={`M${points.map(([px, py]) => `${px.toFixed(1)} ${py.toFixed(1)}`).join('L')}`} />
      <circle cx={lastX} cy={lastY} r="2" />
    </svg>
  );
}

export function ProgressBar({ value, of, what }: { value: number; of: number; what: string }) {
  return (
    <span class="progress">
      <progress value={value} max={Math.max(1, of)} aria-label={what} />
      <span>
        {value} / {of}
      </span>
    </span>
  );
}

interface IntervalBarsProps {
  readonly bars: readonly {
    readonly label: string;
    readonly value: number | null;
    /** 95 % interval; null if it is not known. */
    readonly interval: readonly [low: number, high: number] | null;
  }[];
  readonly range: readonly [number, number];
  readonly what: string;
}

const BAR = { width: 260, height: 14, gap: 8, value: 64, letter: 6.4 } as const;
const LONGEST_LABEL = 24;

/** Bars from 0 with their intervals, one below the other; the first one is what the others are compared with. */
export function IntervalBars({ bars, range: [from, to], what }: IntervalBarsProps) {
  const labels = bars.map(({ label }) =>
    label.length <= LONGEST_LABEL ? label : `…${label.slice(1 - LONGEST_LABEL)}`,
  );
  const left = Math.ceil(largest(labels.map(({ length }) => length)) * BAR.letter) + 10;
  const x = (value: number): number =>
    Math.round(left + (BAR.width * (Math.min(to, Math.max(from, value)) - from)) / (to - from));
  return (
    <svg
      class="interval-bars"
      viewBox={`0 0 ${left + BAR.width + BAR.value} ${bars.length * (BAR.height + BAR.gap) - BAR.gap}`}
      role="img"
      aria-label={what}
    >
      {bars.map(({ label, value, interval }, index) => {
        const y = index * (BAR.height + BAR.gap);
        const ends = value === null ? null : [Math.min(x(0), x(value)), Math.max(x(0), x(value))];
        return (
          <g key={label}>
            <text x="0" y={y + BAR.height - 3}>
              {labels[index]}
            </text>
            <rect class="track" x={left} y={y} width={BAR.width} height={BAR.height} rx="3" />
            {ends !== null && (
              <rect
                class={index === 0 ? 'first' : ''}
                x={ends[0]}
                y={y}
                width={Math.max(1, ends[1]! - ends[0]!)}
                height={BAR.height}
                rx="3"
              />
            )}
            {interval !== null && (
              <line x1={x(interval[0])} x2={x(interval[1])} y1={y + BAR.height / 2} y2={y + BAR.height / 2} />
            )}
            {value !== null && (
              <text x={left + BAR.width + 8} y={y + BAR.height - 3}>
                {formatNumber(value)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}
