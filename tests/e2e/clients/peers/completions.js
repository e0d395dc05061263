// A server of chat completions whose events are known, to compare clients of language models with.
//
//     node completions.js PORT EVENTS GAP_MS
const http = require('http');

const [port, events, gap] = process.argv.slice(2).map(Number);

const chunk = (choices, more = {}) =>
  `data: ${JSON.stringify({ id: 'one', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
const part = (delta, finish_reason = null) => chunk([{ index: 0, delta, logprobs: null, finish_reason }]);

const first = part({ role: 'assistant', content: '' });
const token = part({ content: ' token' });
const usage = { prompt_tokens: 8, completion_tokens: events, total_tokens: events + 8 };
const last = part({}, 'stop') + chunk([], { usage }) + 'data: [DONE]\n\n';
const whole = first + token.repeat(events) + last;

http.createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    response.setHeader('content-type', 'text/event-stream');
    if (!gap) {
      response.end(whole);
      return;
    }
    response.write(first);
    let sent = 0;
    const timer = setInterval(() => {
      if (sent++ < events) {
        response.write(token);
      } else {
        clearInterval(timer);
        response.end(last);
      }
    }, gap);
  });
}).listen(port, '127.0.0.1');
