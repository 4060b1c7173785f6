import { chatAgent } from './chat-agent.ts';

export default chatAgent('openai-chat', (openai, body) => openai.chat.completions.create(body));
