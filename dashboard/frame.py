"""Frame around every page: logo, navigation, and the CSS rules that no theme key covers."""

import html
from pathlib import Path

import streamlit as st

from alertreview.rights import Action, Actor, require, role_words
from dashboard.components import cards
from dashboard.context import application, colours, keep_apart, leave, note_arrival, shown_errors, signed_in
from dashboard.gate.gate import base_path
from dashboard.gate.metrics import page_timed

HERE = Path(__file__).resolve().parent

# The answer bar of the review page would leave an empty strip, and two answers truncated after a few words look the
# same. On the light accent of the dark mode, white button text is unreadable. Tables are exported on the Export page
# only: a download from a table's toolbar would be missing from the audit trail and would not say that its patients are
# simulated. A window too low for case and answer bar, as at 200 % zoom, scrolls both; there the filters are one line,
# which scrolls sideways, under a title on a line of its own. Columns stand below each other there, or values and their
# flags would be cut, but for those of a line inside a card; nor do the buttons of a card's title go below it. On a
# phone the menu is named, and a line of the worklist reads from the left. Print shows the whole page without buttons,
# cards uncut, what can wait of an alert last, as on a phone, and figures at their own size: Streamlit would squeeze a
# figure that is drawn again under a zoom. Figures are whole pixels wide: Plotly would take another fraction for a new
# width, and draw again.
CSS = """<style>
[data-testid=stBottomBlockContainer]{padding:.5rem 1.25rem .75rem}
:is([data-testid=stBottom],[class*="st-key-panel-"]) button :is(.stMarkdownEllipsis,p){white-space:normal;
line-height:1.2}[data-testid=stMetricLabel],[data-testid=stMetricLabel] *{white-space:normal!important}
[data-testid=stElementContainer]:has(.ar-who){position:fixed;top:1.15rem;right:1rem;width:auto;z-index:1000000}
.ar-who{display:flex;gap:.6rem;font-size:.8rem;line-height:1.3}.ar-who a{color:inherit;white-space:nowrap}
.ar-who span{max-width:15rem;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
@media(max-width:1000px){.ar-who span{display:none}}
[data-testid=stExpandSidebarButton] [data-testid=stIconMaterial]{font-size:0}
[data-testid=stExpandSidebarButton] [data-testid=stIconMaterial]::before{content:"menu";font-size:1.4rem}
[data-testid=stExpandSidebarButton]{width:auto!important;padding-inline:.5rem}
[data-testid=stExpandSidebarButton]::after{content:"Menu";margin-left:.35rem;font-size:.95rem}
[class*=st-key-wl-card-] button{height:auto}
[class*=st-key-wl-card-] button>*{justify-content:flex-start;width:100%%}
[class*=st-key-wl-card-] button :is(.stMarkdownEllipsis,p){white-space:normal;text-align:left}
:is(.st-key-review-head,.st-key-alert-head,.st-key-adjudication-head) h1{padding-top:.25rem}
@media(max-width:800px) and (max-height:560px){
.st-key-filter-row{flex-wrap:nowrap!important;overflow-x:auto;overflow-y:hidden}.st-key-filter-row>*{flex-shrink:0}
[data-testid=stExpander] .st-key-filter-row{flex-wrap:wrap!important;overflow:visible}}
@media(max-width:900px){[data-testid=stColumn]{min-width:calc(100%% - 1.5rem)}}
[data-testid=stColumn] [data-testid=stColumn]{min-width:0!important}
[class*=st-key-case-title-]{flex-wrap:nowrap!important}
@media(min-width:601px){[class*=st-key-case-head-]{flex-wrap:nowrap!important}}
@media(max-width:600px){[class*=st-key-case-head-]>:first-child{flex:1 0 100%%!important}}
@media(min-width:500px) and (max-width:800px){.st-key-review-bar>:first-child{flex:1 0 100%%!important}}
@media(max-height:560px){[data-testid=stBottom]{position:static}}
@media print{header,[data-testid=stHeader],[data-testid=stBottom],button,.ar-who{display:none!important}
.stApp,[data-testid=stAppViewContainer],[data-testid=stMain]{position:static!important;overflow:visible!important;
height:auto!important}.stMainBlockContainer{zoom:.75}[data-testid=stTextArea]{display:none}
[data-testid=stElementContainer]:has([data-testid=stPlotlyChart]){zoom:1.3333}
[data-testid=stElementContainer]:has([data-testid=stPlotlyChart]),[data-testid=stFullScreenFrame],
[data-testid=stPlotlyChart],.js-plotly-plot,.plot-container{height:auto!important}
[class*=st-key-header]{flex-wrap:nowrap!important}
[class*=st-key-header]>:first-child{flex:1 1 0!important;width:auto!important;min-width:0!important}
[class*=st-key-header]>:last-child{flex:none!important;width:auto!important}
[class*=st-key-header] :is([data-testid=stElementContainer]:has([data-testid=stSelectbox]),[data-testid=stPopover]),
[class*=st-key-header] [data-testid=stLayoutWrapper]:has([data-testid=stPopover]){display:none}
[data-testid=stLayoutWrapper]:has(>[data-testid=stVerticalBlock]>[data-testid=stElementContainer]:first-child strong),
[data-testid=stPlotlyChart],[data-testid=stDataFrame],table{break-inside:avoid}
[data-testid=stColumn]:has(.st-key-neighbours-card,.st-key-reasons),
[data-testid=stColumn]:has(.st-key-neighbours-card,.st-key-reasons)>[data-testid=stVerticalBlock]{display:contents!important}
[data-testid=stHorizontalBlock]:has(>[data-testid=stColumn] .st-key-reasons){display:flex!important;
flex-flow:column!important}
[data-testid=stColumn]>*>:has(.st-key-neighbours-card,.st-key-histogram-card,.st-key-story){order:1}}
[data-testid=stFullScreenFrame]{width:round(down,100%%,1px)}
[data-testid=stElementToolbarButton]:has([aria-label^="Download as"]){display:none}
%s</style>"""
# A browser prints a page in the theme it has, and the script that would change it comes too late.
DARK_CSS = """[data-testid^=stBaseButton-primary],[data-tag],[data-tag] button{color:#10181C}
@media print{html,body{background:#fff!important}.stApp{filter:invert(1) hue-rotate(180deg) brightness(1.14)}}
"""


OFFERED = (
    ("home", "Home", ":material/home:", None),
    ("worklist", "Worklist", ":material/format_list_numbered:", Action.SEE_ALERTS),
    ("review", "Review", ":material/rate_review:", Action.JUDGE),
    ("my_judgments", "My judgments", ":material/history:", Action.JUDGE),
    ("studies", "Studies", ":material/groups:", Action.SEE_STUDIES),
    ("reports", "Reports", ":material/query_stats:", Action.SEE_RESULTS),
    ("runs", "Runs", ":material/play_circle:", Action.SEE_RUNS),
    ("tasks", "Tasks", ":material/checklist:", Action.MANAGE_TASKS),
    ("export", "Export", ":material/download:", Action.EXPORT),
    ("admin", "Admin", ":material/admin_panel_settings:", Action.MANAGE_PEOPLE),
)
"""File, title, icon and required right of the pages in the navigation, in its order."""
REACHED_FROM_OTHERS = (
    ("alert", "Alert", Action.SEE_ALERTS),
    ("task", "Task", Action.SEE_ALERTS),
    ("study_setup", "New study", Action.MANAGE_STUDIES),
    ("adjudication", "Disagreements", Action.ADJUDICATE),
)
"""File, title and required right of the pages that only other pages link to."""
NEEDED = {name.replace("_", "-"): action for name, *_, action in (*OFFERED, *REACHED_FROM_OTHERS)}


def pages(me: Actor) -> dict[str, list[st.Page]]:
    """Return all pages; those that the role has no use for are hidden from the navigation."""
    offered = [
        st.Page(
            f"views/{name}.py",
            title=title,
            icon=icon,
            url_path=name.replace("_", "-"),
            default=action is None,
            visibility="visible" if action is None or me.may(action) else "hidden",
        )
        for name, title, icon, action in OFFERED
    ]
    hidden = [
        st.Page(f"views/{name}.py", title=title, url_path=name.replace("_", "-"), visibility="hidden")
        for name, title, _ in REACHED_FROM_OTHERS
    ]
    return {"": [*offered, *hidden]}


def draw() -> None:
    """Draw the frame and run the page named in the address."""
    st.set_page_config(page_title="alertreview", page_icon=str(HERE / "theme" / "favicon.svg"), layout="wide")
    st.logo(str(HERE / "theme" / "logo.svg"), size="medium")
    st.html(CSS % (DARK_CSS if colours().mode == "dark" else ""))
    with shown_errors():
        me = signed_in()
        keep_apart()
        offered = pages(me)
        page = st.navigation(offered, position="top")
        st.set_page_config(page_title=f"{page.title} · alertreview")
        leave()
        note_arrival(page.url_path)
        _who(me)
        with st.container(gap="small"), page_timed(page.url_path):
            _run(page, offered, me)


def _run(page: st.Page, offered: dict[str, list[st.Page]], me: Actor) -> None:
    """Run a page; an administrator, who may see no patient, starts on the Admin page."""
    if page.url_path == "" and me.may(Action.MANAGE_PEOPLE) and not me.may(Action.SEE_ALERTS):
        st.switch_page(next(one for one in offered[""] if one.url_path == "admin"))
    action = NEEDED.get(page.url_path)
    if action is not None and not me.is_demo and not me.may(action):
        # Refuse before the page is half drawn. In a demonstration the pages themselves say what is not possible and
        # which command makes a site where it is.
        with cards.header(page.title, "", simulated=application().site.simulated):
            pass
        require(me, action)
    page.run()


def _who(me: Actor) -> None:
    """Show who is signed in, for which units, and a link to sign out; nothing in a demonstration."""
    if me.is_demo:
        return
    units = "all units" if me.units is None else ", ".join(sorted(me.units)) or "no unit"
    words = html.escape(f"{me.name} · {role_words(me.roles)} · {units}")
    leave = f"{base_path()}/logout"
    st.html(
        f'<div class="ar-who"><span title="{words}">{words}</span> <a href="{leave}" target="_self">Sign out</a></div>'
    )
