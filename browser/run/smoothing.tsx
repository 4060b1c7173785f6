/** How much noise a curve loses: the weight of its running mean. */

export function SmoothingSlider({ weight, onChange }: { weight: number; onChange: (weight: number) => void }) {
  return (
    <label class="smoothing">
      Smoothing
      <input
        type="range"
        min="0"
        max="0.99"
        step="0.01"
        value={weight}
        onInput={({ currentTarget }) => onChange(Number(currentTarget.value))}
      />
      <output>{weight === 0 ? 'off' : weight.toFixed(2)}</output>
    </label>
  );
}
