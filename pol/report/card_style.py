"""The style of pages made of cards: light and dark, on a phone and on a screen."""

STYLE = """
:root { color-scheme: light dark; --ink: #212529; --faint: #6c757d; --line: #dee2e6; --card: #fff; --back: #f8f9fa;
  --good: #009e73; --bad: #d55e00; --link: #0072b2; --asserter: #0072b2; --challenger: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e9ecef; --faint: #adb5bd; --line: #495057; --card: #2b3035;
  --back: #1d2125; --link: #56b4e9; --asserter: #56b4e9; --challenger: #e69f00; }
  .funnel { fill: #343a40; } svg .faint { fill: #adb5bd; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 0; }
main { max-width: 960px; margin: 0 auto; padding: 1em; }
h1 { font-size: 1.4em; margin: .2em 0; } h2 { font-size: 1.15em; margin: 0 0 .5em; } h3 { font-size: 1em; }
a { color: var(--link); } code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1em; margin: 1em 0; }
.facts { display: flex; flex-wrap: wrap; gap: .3em 1.6em; color: var(--faint); font-size: 14px; }
.facts b { color: var(--ink); font-weight: 600; overflow-wrap: anywhere; }
.state { display: inline-block; padding: 0 .6em; border-radius: 1em; color: #fff; background: #6c757d;
  font-size: 13px; }
.good { background: var(--good); } .bad { background: var(--bad); } .live { background: var(--link); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; width: 100%; }
th, td { text-align: left; padding: 4px 12px 4px 0; vertical-align: top; } td { border-top: 1px solid var(--line); }
.bar { position: relative; height: 14px; background: var(--line); border-radius: 3px; min-width: 120px; }
.bar i { position: absolute; inset: 0 auto 0 0; border-radius: 3px; }
.bar u { position: absolute; width: 2px; top: -2px; bottom: -2px; background: var(--ink); }
.clock { height: 8px; background: var(--line); border-radius: 4px; margin: .3em 0 1em; }
.clock i { display: block; height: 100%; border-radius: 4px; }
.picture { max-width: 460px; } svg { width: 100%; height: auto; }
.operation { border-left: 4px solid var(--bad); padding: .2em 0 .2em .8em; margin: .8em 0; }
.operation code { display: block; } details { margin: .6em 0; } summary { cursor: pointer; color: var(--link); }
p.note { color: var(--faint); font-size: 13px; }
"""
