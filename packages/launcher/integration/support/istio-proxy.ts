/**
 * Answers as the Istio proxy of a pod does: `node istio-proxy.ts SERVER BUSY`, with what it calls itself and how many times
 * it is too busy to end. Each request to end is a line on standard error; it ends when it has agreed to.
 */
import { createServer } from 'node:http';

const [server = 'envoy', busy = '0'] = process.argv.slice(2);
let refusals = Number(busy);

createServer((request, response) => {
  process.stderr.write(`proxy: ${String(request.method)} ${String(request.url)}\n`);
  response.writeHead(200, { server }).end();
}).listen(15021, '127.0.0.1');

createServer((request, response) => {
  const isBusy = refusals-- > 0;
  process.stderr.write(`proxy: ${String(request.method)} ${String(request.url)} ${isBusy ? 'busy' : 'agreed'}\n`);
  response.writeHead(isBusy ? 503 : 200).end(() => {
    if (!isBusy) process.exit(0);
  });
}).listen(15020, '::1');
