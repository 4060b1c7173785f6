/** All turns of an attempt as tokens, the choice of overlay with its legend, and the numbers of the token pointed at. */
import { useMemo, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { formatNumber } from '../../core/reports/format.ts';
import type { TokensView } from '../../views/api/attempt-views.ts';
import { titleOf } from '../parts/small.tsx';
import { LEVELS, OVERLAY_LABELS, OVERLAYS, scaleOf, type Overlay, type Scale } from './overlays.ts';
import { describeToken, TokenStrip, type TokenLook, type TokenPlace } from './token-strip.tsx';

interface TokenViewProps {
  readonly tokens: TokensView;
  /** The attempt's advantage, where none was recorded by token. */
  readonly advantage: number | null;
  readonly overlay: Overlay;
  readonly onOverlay: (overlay: Overlay) => void;
  /** Frame around the tokens of a turn, by its index. */
  readonly renderTurn: (index: number, strip: ComponentChildren) => ComponentChildren;
}

export function TokenView({ tokens, advantage, overlay, onOverlay, renderTurn }: TokenViewProps) {
  const [isMarked, setMarked] = useState(false);
  const [place, setPlace] = useState<TokenPlace | null>(null);
  const known = useMemo(() => OVERLAYS.filter((name) => isKnown(name, tokens, advantage)), [tokens, advantage]);
  const scale = useMemo(() => scaleOf(overlay, tokens.turns, advantage), [overlay, tokens, advantage]);
  const look: TokenLook = { overlay, scale, fallback: advantage, isMarked, hasText: tokens.hasText };
  const turns = useMemo(
    () =>
      tokens.turns.map((turn, index) =>
        renderTurn(index, <TokenStrip turn={turn} number={index} look={look} onPoint={setPlace} />),
      ),
    // The token pointed at changes nothing of the turns.
    [tokens, overlay, scale, isMarked, advantage, renderTurn],
  );
  return (
    <div class={`token-view by-${overlay} ${tokens.hasText ? '' : 'ids-alone'}`}>
      <div class="token-tools">
        <fieldset class="choice">
          <legend class="note">Color by</legend>
          {OVERLAYS.map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === overlay}
              disabled={!known.includes(name)}
              title={known.includes(name) ? titleOf(OVERLAY_LABELS[name]) : 'not recorded for this attempt'}
              onClick={() => onOverlay(name)}
            >
              {OVERLAY_LABELS[name]}
            </button>
          ))}
        </fieldset>
        <label class="note">
          <input type="checkbox" checked={isMarked} onChange={() => setMarked(!isMarked)} /> mark every space
        </label>
        <Legend overlay={overlay} scale={scale} />
      </div>
      {!tokens.hasText && (
        <p class="note">The store has no vocabulary of this run’s base model, so tokens show their ids.</p>
      )}
      {overlay === 'advantage' && tokens.turns.every((turn) => turn.advantages === null) && (
        <p class="note">
          No advantages were recorded by token; the color is the attempt’s advantage: its reward minus the group’s mean.
        </p>
      )}
      {turns}
      <p class="token-facts mono" role="status">
        {place === null
          ? 'Point at a token, or move with the arrow keys.'
          : describeToken(tokens.turns[place.turn]!, place.index, look).join(' · ')}
      </p>
    </div>
  );
}

function isKnown(overlay: Overlay, { turns }: TokensView, advantage: number | null): boolean {
  if (overlay === 'none') return true;
  if (overlay === 'mask') return turns.some(({ mask }) => mask !== null);
  return scaleOf(overlay, turns, advantage) !== null;
}

function Legend({ overlay, scale }: { overlay: Overlay; scale: Scale | null }) {
  if (overlay === 'mask')
    return (
      <p class="token-legend note">
        <span class="token sampled trained">trained</span>{' '}
        <span class="token sampled untrained">sampled, not trained</span> <span class="token prompt">prompt</span>
      </p>
    );
  if (scale === null) return null;
  const levels = Array.from({ length: LEVELS }, (_, index) => index + 1);
  return (
    <p class="token-legend note">
      {scale.middle !== null && (
        <>
          {formatNumber(scale.low)}{' '}
          {levels.toReversed().map((level) => (
            <i key={level} class="token down" style={{ '--level': level }} />
          ))}
        </>
      )}{' '}
      {formatNumber(scale.middle ?? (overlay === 'logprob' ? scale.high : scale.low))}{' '}
      {levels.map((level) => (
        <i key={level} class="token up" style={{ '--level': level }} />
      ))}{' '}
      {overlay === 'logprob' ? `${formatNumber(scale.low)} or less` : formatNumber(scale.high)} · {scale.about}
    </p>
  );
}
