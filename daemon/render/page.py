"""The Gantt chart as an HTML page: the SVG as wide as the window, light or dark as the reader has it.

Rule: one file that asks nobody for anything; without its script it still shows the chart.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from .chart import Chart
from .svg import svg
from .text import clean

_STYLE = """
body{margin:0;background:#ffffff}svg{width:100%;height:auto;cursor:grab;display:block;user-select:none}
svg:active{cursor:grabbing}p{margin:0 0 1em 24px;font:12px ui-sans-serif,system-ui,sans-serif;color:#5b6878}
@media (prefers-color-scheme:dark){body{background:#0f1720}text{fill:#dbe4ee}.bg{fill:#0f1720}p{color:#93a4b5}
.sub,.tick,.small{fill:#93a4b5}.row{fill:#17212c}.alt{fill:#1c2834}.grid{stroke:#2c3a48}.job{stroke:#0f1720}
.crit{stroke:#ffffff}.link{stroke:#ffffff}.name.black{fill:#10202e}.name.white{fill:#ffffff}}
"""
_HINT = "Ctrl + wheel zooms, dragging moves, a double click resets; point at a job for its story."
_SCRIPT = """
const svg=document.querySelector('svg'),home=svg.viewBox.baseVal,start=[home.x,home.y,home.width,home.height];
let box=[...start],from=null;
const show=()=>svg.setAttribute('viewBox',box.join(' '));
const at=e=>new DOMPoint(e.clientX,e.clientY).matrixTransform(svg.getScreenCTM().inverse());
svg.addEventListener('wheel',e=>{if(!e.ctrlKey&&!e.metaKey)return;e.preventDefault();const
p=at(e),k=Math.min(1.25,Math.max(.8,Math.exp(e.deltaY/400)));const
w=Math.min(start[2]*1.5,Math.max(start[2]/500,box[2]*k)),f=w/box[2];
box=[p.x-(p.x-box[0])*f,p.y-(p.y-box[1])*f,w,box[3]*f];show()},{passive:false});
svg.addEventListener('pointerdown',e=>{from=at(e);svg.setPointerCapture(e.pointerId)});
svg.addEventListener('pointermove',e=>{if(!from)return;const
p=at(e);box[0]-=p.x-from.x;box[1]-=p.y-from.y;show()});svg.addEventListener('pointerup',()=>{from=null});
svg.addEventListener('dblclick',()=>{box=[...start];show()});
"""


def html(chart: Chart, subtitle: str = "") -> str:
    """The chart as one page. O(bars).

    Args:
        chart: what to draw.
        subtitle: a line under the title, already fit for people.
    """
    title = escape(clean(f"{chart.plan.workflow} on {chart.plan.cluster}"))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f"<title>{title}</title></head><body>\n{svg(chart, subtitle)}<style>{_STYLE}</style>\n"
        f"<p>{_HINT}</p>\n<script>{_SCRIPT}</script></body></html>\n"
    )
