import { chatAgent } from './chat-agent.ts';

export default chatAgent('openai-stream', (openai, body) => openai.chat.completions.stream(body).finalChatCompletion());
