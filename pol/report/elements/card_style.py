"""The style of all pages: cards, light and dark, on a phone, on a screen and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2127; --faint: #5c6570; --line: #dfe3e8; --card: #fff; --back: #f5f6f8;
  --good: #00734f; --bad: #b34100; --link: #00619c; --asserter: #00619c; --challenger: #b34100; --fill: #e9ecef;
  --s0: #0072b2; --s1: #e69f00; --s2: #009e73; --s3: #cc79a7; --s4: #56b4e9; --s5: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --faint: #a2abb5; --line: #3b434c; --card: #22282e;
  --back: #171b20; --good: #3fcf9f; --bad: #ff9955; --link: #6bbdf0; --asserter: #6bbdf0; --challenger: #ff9955;
  --fill: #353d45; --s0: #4aa8e0; --s2: #2fc498; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink); background: var(--back);
  margin: 0; -webkit-text-size-adjust: 100%; }
main { max-width: 940px; margin: 0 auto; padding: 1.2em 1em 3em; }
h1 { font-size: 1.55em; line-height: 1.25; margin: .3em 0 .2em; letter-spacing: -.01em; }
h2 { font-size: 1.1em; margin: 0 0 .6em; } h3 { font-size: 1em; margin: 1.2em 0 .3em; }
p { margin: .5em 0; } p, li, dd { overflow-wrap: anywhere; }
a { color: var(--link); } ul { padding-left: 1.2em; margin: .5em 0; }
code { font: .87em/1.45 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
pre { font: .87em/1.5 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--fill); border-radius: 6px;
  padding: .7em .9em; margin: .5em 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1em 1.1em;
  margin: 1em 0; }
.lead { font-size: 1.08em; margin: .4em 0 0; } p.note, figcaption { color: var(--faint); font-size: 13px; }
.crumb { font-size: 14px; margin: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: .7em 1.4em; margin: 0; }
.facts dt { color: var(--faint); font-size: 12.5px; } .facts dd { margin: 0; font-weight: 600;
  overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; } .facts code { font-weight: 500; }
.facts div:has(code) { grid-column: span 2; }
.state { display: inline-block; padding: .05em .65em; border-radius: 1em; font-size: 13px; font-weight: 600;
  color: var(--faint); border: 1px solid currentColor; white-space: nowrap; vertical-align: .08em; }
.state.good, b.good { color: var(--good); } .state.bad, b.bad { color: var(--bad); }
.state.live { color: var(--link); }
.verdict { border-left: 6px solid var(--faint); } .verdict.good { border-left-color: var(--good); }
.verdict.bad { border-left-color: var(--bad); } .verdict.live { border-left-color: var(--link); }
.verdict > b { font-size: 1.5em; letter-spacing: .02em; }
table { border-collapse: collapse; font-size: 14px; width: 100%; font-variant-numeric: tabular-nums; }
th { color: var(--faint); font-weight: 500; font-size: 12.5px; } td { border-top: 1px solid var(--line); }
th, td { text-align: left; padding: 5px 14px 5px 0; vertical-align: top; overflow-wrap: break-word; }
th:last-child, td:last-child { padding-right: 0; } td.n, th.n { text-align: right; }
tr > td.name { width: 11em; color: var(--faint); }
@media (max-width: 640px) {
  main { padding: .8em .7em 2em; } .card { padding: .9em .8em; } h1 { font-size: 1.35em; }
  table, tbody, td { display: block; } thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 0 1.1em; border-top: 1px solid var(--line); padding: .5em 0; }
  tbody tr:first-child { border-top: 0; } td, td.n { border: 0; padding: 0; text-align: left; overflow-wrap: anywhere; }
  td[data-label]:not([data-label=""])::before { content: attr(data-label) " "; color: var(--faint); font-size: 12.5px; }
  td:empty { display: none; } tr > td.name { width: 100%; font-size: 12.5px; } }
.bar { position: relative; height: 10px; background: var(--fill); border-radius: 5px; min-width: 90px;
  margin: .35em 0; }
.bar i { position: absolute; inset: 0 auto 0 0; border-radius: 5px; background: var(--link); }
.bar u { position: absolute; width: 2px; top: -3px; bottom: -3px; background: var(--ink); }
.stages { display: flex; flex-wrap: wrap; gap: .3em; list-style: none; padding: 0; margin: .8em 0 .2em;
  font-size: 13px; }
.stages li { flex: 1 1 5.6em; border-top: 4px solid var(--fill); padding-top: .25em; color: var(--faint); }
.stages .done { border-color: var(--good); } .stages .now { border-color: var(--link); color: var(--ink);
  font-weight: 600; } .stages .lost { border-color: var(--bad); color: var(--ink); font-weight: 600; }
figure { margin: .4em 0 1em; } .legend { display: flex; flex-wrap: wrap; gap: .1em 1.2em; font-size: 13px;
  margin: .2em 0; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 5px; margin-right: .4em; }
.plot { display: grid; grid-template: 190px 1.5em / auto 1fr; column-gap: .5em; font-size: 12px;
  color: var(--faint);
  font-variant-numeric: tabular-nums; }
.plot.strip { grid-template-rows: 24px 1.5em; }
.ys, .xs { position: relative; } .ys span { position: absolute; right: 0; transform: translateY(50%);
  line-height: 1; }
.xs { grid-column: 2; } .xs span { position: absolute; top: .2em; transform: translateX(-50%);
  white-space: nowrap; }
.xs span:first-child { transform: none; } .xs span:last-child:not(:first-child) { transform: translateX(-100%); }
.plot svg { width: 100%; height: 100%; overflow: visible; grid-column: 2; }
.plot svg * { vector-effect: non-scaling-stroke; fill: none; } .plot rect { fill: var(--fill); }
.grid { stroke: var(--line); stroke-width: 1px; } .curve { stroke-width: 2px; stroke-linejoin: round; }
.dot { stroke-width: 8px; stroke-linecap: round; } .gap { stroke-width: 1.5px; stroke-dasharray: 2 5; opacity: .8; }
.limit { stroke: var(--bad); stroke-width: 1.5px; stroke-dasharray: 6 4; }
.cells { display: grid; grid-template-columns: minmax(6.5em, auto) 1fr; gap: .25em .8em; font-size: 13px;
  font-variant-numeric: tabular-nums; align-items: start; }
.cells > div { display: flex; flex-wrap: wrap; gap: 3px; } .cells > code { padding-top: .15em; }
.cell { width: 26px; height: 22px; line-height: 22px; border-radius: 4px; text-align: center;
  background: var(--fill);
  color: var(--ink); } .cell.none { background: none; color: var(--faint); }
.cell.good { background: var(--good); color: var(--card); } .cell.bad { background: var(--bad); color: var(--card);
  font-weight: 700; }
.map { display: grid; grid-template-columns: minmax(0, 17em) 1fr; gap: 2px .8em; align-items: center; }
.map > div { display: grid; gap: 1px; height: 15px; background: var(--fill); border-radius: 2px; overflow: hidden; }
@media (max-width: 640px) { .map { grid-template-columns: minmax(0, 1fr); gap: 0; } .map > div { height: 12px; } }
.picture { max-width: 460px; } .picture svg { width: 100%; height: auto; } .funnel { fill: var(--fill);
  opacity: .55; }
svg .faint { fill: var(--faint); } .open { fill: var(--fill); }
.operation { border-left: 4px solid var(--bad); padding: .2em 0 .2em .8em; margin: .8em 0; }
.operation code { display: block; white-space: pre-wrap; }
details { margin: .6em 0; } summary { cursor: pointer; color: var(--link); }
details[open] summary { margin-bottom: .5em; }
@media print { body { background: #fff; font-size: 12px; } main { max-width: none; padding: 0; }
  .card { break-inside: avoid; border-radius: 0; } a { color: inherit; } }
"""
