"""Takes pictures of the flow out of a report of `onefold try`, as one SVG: picture.py REPORT DRIVE... > FILE"""

import re
import sys


def main() -> None:
    report, drives = open(sys.argv[1], encoding="utf-8").read(), sys.argv[2:]
    style = re.search(r"<style>(.*?)</style>", report, re.S)[1]
    # As a picture on a page of any colour it has paper of its own.
    style = re.sub(r"@media \(prefers-color-scheme: dark\) \{.*?\n\}\n", "", style, flags=re.S)
    style = "\n".join(line for line in style.splitlines() if re.match(r"\s*(:root|svg|\.|--|\}|color)", line))
    # Not all programs that draw SVG know variables.
    values = dict(re.findall(r"(--[a-z]+\d*): ([^;]+);", style))
    style = re.sub(r":root \{.*?\}", "", style, count=1, flags=re.S)
    style = re.sub(r"var\((--\w+)\)", lambda name: values.get(name[1], name[0]), style)
    defs = re.search(r"<svg style=[^>]*>(.*?)</svg>", report, re.S)
    parts, top = [], 16
    for drive in drives:
        found = re.search(
            r'<svg xmlns[^>]*aria-label="Bytes from the program to '
            + re.escape(drive)
            + r'" viewBox="0 0 ([\d.]+) ([\d.]+)">(.*?)</svg>',
            report,
            re.S,
        )
        width, height = float(found[1]), float(found[2])
        parts.append(f'<text x="0" y="{top + 4}" class="strong" style="font-size:15px">{drive}</text>')
        parts.append(f'<g transform="translate(0 {top + 14})">{found[3]}</g>')
        top += height + 48
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -8 {width + 32:g} {top:g}" font-family="sans-serif">'
        f"<style>{style}</style>{defs[1] if defs else ''}"
        f'<rect x="-16" y="-8" width="{width + 32:g}" height="{top:g}" fill="#ffffff"/>'
        f"{''.join(parts)}</svg>"
    )


main()
