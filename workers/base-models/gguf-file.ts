/** A model as llama.cpp packs it: nothing that a run could load or train. What a person does with it instead. */
import { basename, dirname, extname } from 'node:path';
import { TemperError } from '../../core/failures.ts';

export const GGUF = '.gguf';

const CONVERT = [
  'import sys, torch, transformers as t',
  'd, f, to = sys.argv[1:]',
  't.AutoTokenizer.from_pretrained(d, gguf_file=f).save_pretrained(to)',
  't.AutoModelForCausalLM.from_pretrained(d, gguf_file=f, dtype=torch.float32, quantization_config=t.GgufConfig(dequantize=True)).to(torch.bfloat16).save_pretrained(to)',
].join('; ');

export function refuseGguf(file: string): never {
  const name = basename(file, extname(file));
  const places = [dirname(file), basename(file), `./${name}`].map(shellWord).join(' ');
  throw new TemperError(
    'BadConfig',
    `a base model must be a folder (as transformers saves it) with .safetensors files, got the GGUF file ${file}; name the model that it was made from, or convert it and pass --base-model ./${name}: python -m pip install gguf torch 'transformers>=5.23' && python -c '${CONVERT}' ${places} (GGUF files do not hold how a tokenizer splits text: compare pre_tokenizer in ./${name}/tokenizer.json with the original model's and correct it, or the model sees other tokens than it was trained on)`,
  );
}

function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
