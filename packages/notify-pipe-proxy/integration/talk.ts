// In the pod: becomes a user, sends a text through the pipe, ends its side and prints the answer, or the error's code.
import { connect } from 'node:net';

const [uid = '0', text = ''] = process.argv.slice(2);
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));
const pipe = connect({ path: '/var/run/kubevirt/domain-notify-pipe.sock', allowHalfOpen: true });
pipe.on('error', (error: NodeJS.ErrnoException) => process.stdout.write(error.code ?? error.message));
pipe.on('data', (chunk: Buffer) => process.stdout.write(chunk));
pipe.end(text);
