/** How to load what was written for llama.cpp and for mlx-lm; parts of the model card. */
import { GGUF_FILE } from '../../workers/python/export-policy.ts';

export function loadGguf(run: string): string {
  return `## Load it

With llama.cpp, as an OpenAI-compatible server:

\`\`\`sh
llama-server --model ${GGUF_FILE} --alias ${run} --jinja
\`\`\`

With Ollama (check that its answers begin as they should: Ollama knows the common chat templates only):

\`\`\`sh
echo 'FROM ./${GGUF_FILE}' > Modelfile
ollama create ${run} --file Modelfile
ollama run ${run}
\`\`\``;
}

/** `source`: of the base model. */
export function loadMlx(source: string): string {
  return `## Load it

With mlx-lm, from this folder, beside the base model:

\`\`\`sh
mlx_lm.generate --model ${source} --adapter-path . --prompt "…"
mlx_lm.server --model ${source} --adapter-path .
\`\`\``;
}
