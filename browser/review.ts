/** Keys press the buttons that name them on the pages of `temper review`; without this script the buttons do the same. */
addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.closest('input, textarea, summary') !== null;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const button = document.querySelector<HTMLButtonElement>(`button[data-keys~="${CSS.escape(event.key)}"]`);
  if (button === null) return;
  event.preventDefault();
  button.click();
});
