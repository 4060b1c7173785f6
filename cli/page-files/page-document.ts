/** The document that the script of `temper ui` draws into: of the server, and of an export. */

interface Additions {
  /** Elements of the head. */
  readonly head?: string;
  /** Scripts that must have run before the page's own. */
  readonly scripts?: string;
}

export function pageDocument({ head = '', scripts = '' }: Additions = {}): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${head}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>Temper</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
</head>
<body>
<div id="app"></div>
<noscript><p>This page needs JavaScript.</p></noscript>
${scripts}<script src="page.js"></script>
</body>
</html>
`;
}
