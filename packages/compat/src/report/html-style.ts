/** The look of the HTML matrix. Every verdict has a sign, a word and a border of its own beside its colour. */
export const STYLE = `
:root{color-scheme:light dark;--line:#9aa4b0;--soft:#f4f6f8;--text:#16202b;--page:#fff;--faint:#66717d;--pass:#e3f4e6;--difference:#fdf3d0;
--notBuilt:#e9edf2;--fail:#fbdad7}
@media (prefers-color-scheme:dark){:root{--line:#5b6672;--soft:#1c242d;--text:#e7edf3;--page:#11171d;--faint:#93a0ad;--pass:#173a20;
--difference:#4a3b0c;--notBuilt:#2a333d;--fail:#5c1b17}}
*{box-sizing:border-box}
body{margin:0;padding:1rem clamp(.75rem,3vw,2.5rem) 3rem;font:15px/1.45 system-ui,sans-serif;color:var(--text);background:var(--page)}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem}p{margin:.35rem 0;max-width:95ch}
.legend{display:flex;flex-wrap:wrap;gap:.4rem;margin:.6rem 0;padding:0;list-style:none}
.legend li{padding:.15rem .55rem;border-radius:4px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{border:1px solid var(--line);padding:.3rem .4rem;text-align:left;vertical-align:top;font-size:.84rem}
thead th{background:var(--soft);vertical-align:bottom;font-weight:600}
tbody th{background:var(--soft);position:sticky;left:0}
.pass{background:var(--pass)}.difference{background:var(--difference);outline:1px dashed;outline-offset:-3px}
.notBuilt{background:var(--notBuilt);outline:1px dotted;outline-offset:-3px}
.fail{background:var(--fail);outline:3px double;outline-offset:-4px;font-weight:700}
td>span,.difference summary,.fail summary{white-space:nowrap}
summary{cursor:pointer;list-style:none;text-decoration:underline dotted;text-underline-offset:3px}
summary::-webkit-details-marker{display:none}summary:focus-visible{outline:2px solid}
details[open] summary{font-weight:700}
.reason{margin:.3rem 0 0;font-weight:400;min-width:10rem;overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.72rem;max-height:18rem;overflow:auto;font-weight:400}
.none{color:var(--line)}
.overview th,.overview td{padding:.2rem;font-size:.75rem}.overview tr>:first-child{width:5rem}.overview .fail{font-weight:400}
.counts{list-style:none;margin:0;padding:0;display:grid;gap:2px}
.counts li{padding:0 .15rem}.zero{color:var(--faint)}
.counts .difference,.counts .notBuilt{outline-offset:-1px}.overview .counts .fail{outline:2px solid;outline-offset:-1px;font-weight:700}
.overview .none{text-align:center;vertical-align:middle}
.matrix tr>:first-child{width:12.5rem}
@media (max-width:760px){
.overview thead,.overview .none,.overview tr:not(:has(.counts)),.overview tbody th{display:none}
.overview,.overview tbody,.overview tr,.overview tr>td{display:block;width:100%}
.overview td::before{content:attr(data-label);font-weight:600}
.overview .counts{display:flex;flex-wrap:wrap;gap:.3rem;margin:.2rem 0}
.matrix thead{display:none}.matrix,.matrix tbody,.matrix tr,.matrix tr>th,.matrix td{display:block;width:100%}
.matrix tr{margin:0 0 1rem;border:1px solid var(--line)}.matrix th,.matrix td{border-width:0 0 1px}
.matrix th{font-size:1rem;position:static}
.matrix td{display:flex;gap:.6rem;justify-content:space-between}.matrix td::before{content:attr(data-label);flex:1 1 45%}
.matrix td>*{flex:1 1 55%;min-width:0}.reason{min-width:0}}
@media print{details>*{display:block}body{font-size:11px}}
`;
