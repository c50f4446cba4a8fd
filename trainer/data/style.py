"""How the page looks: one style sheet, in light and in dark, with fonts that have Chinese characters."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f7f7f5; --card: #ffffff; --ink: #1d2329; --soft: #5d6873; --line: #dfe3e6;
  --blue: #2f6db5; --good: #1f7a4d; --stop: #b3261e; --warn: #a86a00; --good-bg: #e6f4ec; --stop-bg: #fbe9e7; --warn-bg: #fdf3e0;
  --p0: #2f6db5; --p1: #e0903a; --p2: #4aa37a; --p3: #8a6fb5; --p4: #c25b6e; --p5: #8b949c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181c; --card: #1d2329; --ink: #e8ebee; --soft: #9aa5af; --line: #333c45;
    --blue: #6ba3e0; --good: #64c795; --stop: #f08a80; --warn: #e6b25c; --good-bg: #18362a; --stop-bg: #43211e; --warn-bg: #3b2f17;
    --p0: #6ba3e0; --p1: #e8a960; --p2: #6fc49b; --p3: #ab93d6; --p4: #dd8494; --p5: #8b949c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 28px 24px 48px; max-width: 980px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans SC",
    "Noto Sans CJK SC", "WenQuanYi Zen Hei", sans-serif;
}
header { padding: 18px 24px; border-radius: 12px; border-left: 8px solid; }
header.good { background: var(--good-bg); border-color: var(--good); }
header.stop { background: var(--stop-bg); border-color: var(--stop); }
header .state { margin: 0; font-weight: 700; letter-spacing: 0.08em; }
header.good .state { color: var(--good); }
header.stop .state { color: var(--stop); }
h1 { margin: 2px 0 0; font-size: 20px; font-weight: 600; overflow-wrap: anywhere; }
h2 { margin: 0 0 12px; font-size: 16px; }
h3 { margin: 0; font-size: 15px; font-weight: 600; }
section { margin-top: 18px; padding: 18px 22px; background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; }
.tiles { padding: 0; border: 0; background: none; }
.tile { padding: 12px 16px; background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.tile b { display: block; font-size: 22px; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.tile.bad b { color: var(--stop); }
article, details { padding: 12px 0; border-top: 1px solid var(--line); }
h2 + * { padding-top: 0; border-top: 0; }
summary { font-weight: 600; cursor: pointer; }
article i, summary i { display: inline-block; min-width: 46px; margin-right: 10px; padding: 1px 8px; border-radius: 6px; }
article i, summary i { font-style: normal; font-size: 12px; text-align: center; }
.stop i { background: var(--stop-bg); color: var(--stop); }
.warn i { background: var(--warn-bg); color: var(--warn); }
table { width: 100%; margin-top: 8px; border-collapse: collapse; font-size: 13.5px; }
td, th { padding: 5px 10px 5px 0; vertical-align: top; text-align: left; font-weight: 400; overflow-wrap: anywhere; }
tr + tr > * { border-top: 1px solid var(--line); }
th { width: 190px; color: var(--soft); }
.where { width: 230px; color: var(--soft); font: 12.5px/1.6 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.text { margin: 3px 0 0; padding: 3px 10px; border-left: 3px solid var(--line); color: var(--soft); }
.note { margin: 8px 0 0; color: var(--soft); font-size: 13px; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 12px; font-family: inherit; font-variant-numeric: tabular-nums; }
svg .legend { fill: var(--ink); font-size: 13px; }
.grid { stroke: var(--line); stroke-width: 1; }
.bar { fill: var(--blue); }
.bar.over { fill: var(--stop); }
line.mark { stroke: var(--soft); stroke-dasharray: 4 3; }
line.mark.limit { stroke: var(--stop); }
svg text.mark.limit { fill: var(--stop); }
.part0 { fill: var(--p0); } .part1 { fill: var(--p1); } .part2 { fill: var(--p2); }
.part3 { fill: var(--p3); } .part4 { fill: var(--p4); } .part5 { fill: var(--p5); }
"""
