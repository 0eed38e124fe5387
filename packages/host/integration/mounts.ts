// In a mount namespace of its own: binds, overlays, unmounts, and says what it saw.
import * as fs from 'node:fs';
import { bindMount, errnoOf, isMountPoint, mount, SafePath, unmount } from '../src/index.ts';

const [directory = ''] = process.argv.slice(2);
const make = (name: string): string => {
  fs.mkdirSync(`${directory}/${name}`);
  return `${directory}/${name}`;
};
const errorOf = (action: () => unknown): string | undefined => {
  try {
    action();
    return undefined;
  } catch (caught) {
    return errnoOf(caught);
  }
};
const [source, target, lower, upper, work, merged] = ['source', 'target', 'lower', 'upper', 'work', 'merged'].map(make) as [string, string, string, string, string, string]; // prettier-ignore
fs.writeFileSync(`${source}/file`, 'x');
bindMount(source, target, { readOnly: true });
const isReadOnly = errorOf(() => fs.writeFileSync(`${target}/new`, ''));
fs.writeFileSync(`${lower}/below`, 'b');
mount({ source: 'tmpfs', target: upper, fsType: 'tmpfs' });
for (const name of ['u', 'w']) fs.mkdirSync(`${upper}/${name}`);
mount({
  source: 'overlay',
  target: merged,
  fsType: 'overlay',
  data: `lowerdir=${lower},upperdir=${upper}/u,workdir=${upper}/w`,
});
fs.writeFileSync(`${merged}/above`, 'a');
using pod = SafePath.openRoot(directory);
fs.writeFileSync(`${directory}/one`, '1');
pod.touch('two', 0o600);
using two = pod.join('two');
bindMount(`${directory}/one`, two.procPath);
const bound = fs.readFileSync(`${directory}/two`, 'utf8');
pod.mknod('null', 'char', 0o666, { major: 1, minor: 3 });
fs.writeFileSync(`${directory}/null`, 'gone');
const result = {
  isReadOnly,
  wasMounted: isMountPoint(target),
  merged: fs.readdirSync(merged).sort(),
  lower: fs.readdirSync(lower),
  bound,
  nullIsEmpty: fs.readFileSync(`${directory}/null`, 'utf8') === '',
  missing: errorOf(() => mount({ source: '/no/such', target, flags: ['bind'] })),
  unmounted: [target, merged, upper, `${directory}/two`].map((t) => unmount(t)),
  again: unmount(target),
  isMounted: isMountPoint(target),
  work: fs.existsSync(work),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
