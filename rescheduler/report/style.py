"""How the page looks: neutral greys, one colour for what would be, one for what stays."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #ffffff; --card: #f6f8fa;
  --now: #8a94a6; --after: #1f6feb; --held: #bf8700;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117; --card: #151b23;
    --now: #656d78; --after: #4493f8; --held: #d29922;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 64rem;
  color: var(--ink); background: var(--page); font: 15px/1.5 system-ui, sans-serif;
}
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; }
p { margin: .25rem 0; }
.soft { color: var(--soft); }
ol {
  padding: 1rem 1rem 1rem 2.4rem; margin: 0;
  background: var(--card); border: 1px solid var(--line); border-radius: 8px;
}
li { margin: .2rem 0; overflow-wrap: anywhere; }
.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .75rem; margin: 1.25rem 0;
}
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem; }
.fact b { display: block; font-size: 1.3rem; line-height: 1.2; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td {
  text-align: left; vertical-align: top; padding: .35rem .9rem .35rem 0;
  border-bottom: 1px solid var(--line); white-space: nowrap;
}
td:last-child { white-space: normal; overflow-wrap: anywhere; min-width: 14rem; }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.25rem; }
figure { margin: 0; }
figcaption { display: flex; justify-content: space-between; gap: 1rem; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.now { fill: var(--now); color: var(--now); }
.after { fill: var(--after); color: var(--after); }
.held { fill: var(--held); }
.axis { stroke: var(--line); }
""".strip()
