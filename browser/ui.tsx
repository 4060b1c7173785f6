/** The page of `temper ui`. */
import { render } from 'preact';
import { App } from './app.tsx';
import { applyTheme } from './parts/theme.ts';

applyTheme();
render(<App />, document.getElementById('app')!);
