"""The look of the report: neutral, light or dark as the reader's system is, wide tables scroll on a
phone.
"""

from __future__ import annotations

from typing import Final

CSS: Final = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #22262b; --soft: #5f6873; --line: #e1e5ea; --card: #f6f7f9;
  --yes: #11734b; --no: #b3261e; --note: #7a5200; --note-back: #fff6df; --link: #1f5fa8; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e4e7eb; --soft: #9aa4af; --line: #2c3239; --card: #1d2126;
  --yes: #5cc79a; --no: #ff8a80; --note: #f0cf85; --note-back: #2b2413; --link: #86b7f0; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 3.5rem 0 .25rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 2rem 0 .6rem; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.soft { color: var(--soft); }
.small { font-size: .875rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 1.75rem 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .75rem .9rem; }
.facts b { display: block; font-size: 1.3rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.facts span { color: var(--soft); font-size: .82rem; }
.note { background: var(--note-back); color: var(--note); border-radius: .6rem; padding: .7rem .9rem; margin: 1rem 0;
  max-width: none; }
.wide { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .925rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .82rem; }
th, td { padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.measured { font-variant-numeric: tabular-nums; }
.yes { color: var(--yes); font-weight: 600; } .no { color: var(--no); font-weight: 700; }
figure { margin: 1rem 0 1.75rem; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line); border-radius: .6rem;
  padding: .5rem; }
figcaption { color: var(--soft); font-size: .875rem; margin-top: .4rem; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--soft); font-size: .925rem; }
code { font: .86em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
footer { margin-top: 4rem; padding-top: 1.25rem; padding-bottom: 3rem; border-top: 1px solid var(--line); }
@media (max-width: 34rem) { body { font-size: 15px; } h1 { font-size: 1.5rem; } header { padding-top: 1.75rem; }
  .claims thead { display: none; } .claims tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line); }
  .claims td { display: block; border: 0; padding: .1rem 0; } .claims td::before { color: var(--soft); font-size: .82rem;
  font-weight: 400; } .claims td.measured::before { content: "measured: "; } .claims td.source::before { content: "from: "; }
  .claims td.holds::before { content: "holds: "; } }
@media print { h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""
