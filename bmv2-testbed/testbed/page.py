"""`report.html`: one page that needs no network. In: documents of runs. Out: a table of the runs and, for each, its iterations over time with
what was played and what the controller did, and what the switches lost."""
import html

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 900, 220, 52, 24, 14
COLOURS = ["#1b6ca8", "#c8553d", "#3a7d44", "#8a5a9e", "#b8860b", "#2f4858", "#a23b72", "#5f7a61"]
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 960px; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } th, td { padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left } svg { background: #fafafa; border: 1px solid #ddd } code { background: #f3f3f3 }
.what { text-align: left } h2 { margin-top: 2em } small { color: #666 }
"""


def ms(value):
    return "–" if value is None else f"{value:.1f}"


def text(value):
    return html.escape(str(value))


def table(heads, rows):
    head = "".join(f"<th>{text(head)}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def chart(document):
    """Communication time of every iteration over the time of the run; vertical lines are events."""
    phases = [(name, phase) for name, job in document["jobs"].items() for phase in job["phases"]]
    if not phases:
        return "<p>No iteration was finished.</p>"
    begin = min(phase["began_s"] for _, phase in phases)
    end = max(phase["began_s"] for _, phase in phases) + 1e-9
    highest = max(phase["comm_ms"] for _, phase in phases) * 1.05
    x = lambda wall: LEFT + (WIDTH - LEFT - 10) * (wall - begin) / (end - begin)
    y = lambda ms: HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * ms / highest
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" role="img" aria-label="communication time per iteration">']
    for share in (0, 0.5, 1):
        level = highest * share
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(level):.1f}" y2="{y(level):.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{y(level) + 4:.1f}" text-anchor="end" font-size="11">{level:.0f}</text>')  # fmt: skip
    for share in (0, 0.25, 0.5, 0.75, 1):
        wall = begin + (end - begin) * share
        parts.append(f'<text x="{x(wall):.1f}" y="{HEIGHT - 8}" text-anchor="middle" font-size="11">{wall - begin:.1f} s</text>')
    for event in document["events"]:
        if begin <= event["wall_s"] <= end:
            parts.append(f'<line x1="{x(event["wall_s"]):.1f}" x2="{x(event["wall_s"]):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#888" '
                         f'stroke-dasharray="4 3"/><text x="{x(event["wall_s"]) + 3:.1f}" y="{TOP + 9}" font-size="10">{text(event["kind"])}</text>')  # fmt: skip
    for colour, (name, job) in zip(COLOURS * len(document["jobs"]), document["jobs"].items()):
        points = [(x(phase["began_s"]), y(phase["comm_ms"])) for phase in job["phases"]]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-opacity=".4"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6" fill="{colour}"><title>{text(name)}</title></circle>' for a, b in points]
    parts.append("</svg><p><small>ms per iteration; ")
    parts += [f'<span style="color:{colour}">● {text(name)}</span> ' for colour, name in zip(COLOURS * len(document["jobs"]), document["jobs"])]
    return "".join(parts) + "</small></p>"


def told(document):
    """What was played and what the controller did about it, in order."""
    begin = min((phase["began_s"] for job in document["jobs"].values() for phase in job["phases"]), default=0)
    rows = [(event["wall_s"] - begin, "played", event["kind"], detail(event, ("kind", "at_s", "at_ns", "wall_s"))) for event in document["events"]]
    rows += [(event["wall_s"] - begin, "controller", event["event"]["event"], detail(event["event"], ("event", "evidence")))
             for event in document["controller"]]  # fmt: skip
    rows.sort()
    shown, more = rows[:60], len(rows) - 60
    lines = [(f"{at:.2f}", who, what, how) for at, who, what, how in shown]
    note = f"<p><small>{more} more are in events.jsonl.</small></p>" if more > 0 else ""
    return table(["s", "who", "what", "how"], lines) + note


def detail(event, without):
    return ", ".join(f"{key} {value}" for key, value in event.items() if key not in without)


def lost(document):
    rows = [[name, *reason] for name, switch in document["switches"].items() for reason in switch["losses"].items() if reason[1]]
    return table(["switch", "lost by", "packets"], rows) if rows else "<p>The switches lost no packet, or do not tell.</p>"


def run(document, name):
    job_rows = [(job, told["iterations"], ms(told["comm_ms"]), ms(told["longest_ms"])) for job, told in document["jobs"].items()]
    return (f"<h2>{text(name)}</h2>{chart(document)}{table(['job', 'iterations', 'mean ms', 'longest ms'], job_rows)}"
            f"<h3>What happened</h3>{told(document)}<h3>Losses</h3>{lost(document)}")  # fmt: skip


def page(documents, rows):
    first = documents[0]
    heads = ["run", "communication ms", "× first", *first["jobs"], "stragglers found", "moved", "kept", "forced flips"]
    lines = [
        [row["run"], ms(row["comm_ms_mean"]), "–" if row["ratio"] is None else f"{row['ratio']:.3f}", *[ms(time) for time in row["jobs"].values()],
         row["found"], row["moved"], row["kept"], row["forced_flips"]]
        for row in rows
    ]  # fmt: skip
    title = f"{first['scenario']} on {first['switch']}"
    body = "".join(run(document, row["run"]) for document, row in zip(documents, rows))
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{text(title)}</title><style>{STYLE}</style>'
            f"<h1>{text(title)}</h1><p>Real switch processes, a real controller, TCP between Mininet hosts. Feedback: "
            f"{text(first['feedback'])}. Communication: first byte handed over by any rank to last byte reduced by the last; mean without each "
            f"job's first iteration.</p>{table(heads, lines)}{body}</html>")  # fmt: skip
