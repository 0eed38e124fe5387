/** Style of the timeline page; follows the reader's light or dark setting and folds into one column on a phone. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5c6675; --line: #d9dee6; --paper: #fff; --band: #f5f7fa;
  --handler: #2563ab; --launcher: #b4540a; --other: #4f6f52; --failed: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --soft: #a3adba; --line: #343c47; --paper: #14181d;
  --band: #1c2229; --handler: #74aef0; --launcher: #f0a35e; --other: #93b896; --failed: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.5rem; overflow-wrap: anywhere; }
header p { margin: .25rem 0 1rem; color: var(--soft); overflow-wrap: anywhere; }
dl { display: flex; flex-wrap: wrap; gap: .75rem 2rem; margin: 0 0 1rem; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
section { --bar: var(--other); margin-top: 1.5rem; }
.who-handler { --bar: var(--handler); }
.who-launcher { --bar: var(--launcher); }
h2 { margin: 0 0 .25rem; font-size: 1.05rem; color: var(--bar); }
.axis { position: relative; height: 1.4rem; margin-left: 30rem; border-bottom: 1px solid var(--line); }
.axis i { position: absolute; top: 0; bottom: 0; border-left: 1px solid var(--line); font-style: normal; }
.axis b { font-weight: 400; font-size: .75rem; color: var(--soft); padding-left: 3px; white-space: nowrap; }
.axis u { position: absolute; top: 0; bottom: 0; right: 0; background: repeating-linear-gradient(45deg, var(--line) 0 1px, transparent 1px 5px); }
.axis .last b { position: absolute; right: 0; padding: 0 3px 0 0; }
ol { list-style: none; margin: 0; padding: 0; }
li { display: grid; grid-template-columns: 6rem 24rem 1fr; align-items: center; padding: .2rem 0; }
li:nth-child(odd) { background: var(--band); }
.at { white-space: nowrap; font-variant-numeric: tabular-nums; color: var(--soft); padding-right: .75rem; text-align: right; }
.what { padding-right: 1rem; overflow-wrap: anywhere; }
.took, .where { color: var(--soft); font-size: .85rem; font-variant-numeric: tabular-nums; }
.where { display: block; }
.track { position: relative; height: 1.1rem; }
.bar { position: absolute; top: .15rem; bottom: .15rem; background: var(--bar); border-radius: 2px; }
.bar.failed { background: repeating-linear-gradient(45deg, var(--failed) 0 6px, transparent 6px 9px); outline: 1px solid var(--failed); }
.moment { position: absolute; top: .3rem; width: .55rem; height: .55rem; margin-left: -.275rem; border-radius: 50%; background: var(--bar); }
@media (max-width: 60rem) {
  body { padding: 1rem; }
  .axis { margin-left: 0; }
  li { grid-template-columns: 6.5rem 1fr; row-gap: .1rem; }
  .track { grid-column: 1 / -1; }
}
`;
