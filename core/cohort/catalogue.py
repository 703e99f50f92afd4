"""What the task catalogue says by default: labs of one order are one task, and what nobody orders is not asked about.

The rules look at names alone, in English; a site changes their answers in its task catalogue.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.cohort.tasks import Tasks
from core.kinds import Kind, task_key, task_of

PANEL: Final = "panel:"
"""Begins the item of a task that stands for an order group."""
NO_NAME: Final = "the source has no name for it"
_SEPARATOR = "\n"


@dataclass(frozen=True)
class NameRule:
    """Names of a kind of decision that are no order."""

    kind: Kind
    reason: str  # what it is
    # Regular expression, searched in the name in lower case; in the name of a lab only up to its fluid or unit.
    pattern: str


_CELLS = (
    r"\w*(acantho|aniso|dacryo|echino|ellipto|macro|micro|ovalo|poikilo|schisto|sphero|stomato)cyt(es?|osis)|"
    r"(atypical|reactive|variant) lymphocytes|(pro|meta)?myelocytes|bands|band forms|blasts|plasma cells|smudge cells|"
    r"immature granulocytes|(bite|envelope|fragmented|mesothelial) cells?|wbc clumps|macrophages?|"
    r"nucleated (red|rbcs?).*|nrbc|other( cells?)?|young|hypersegmented.*|(poly|hypo)chrom\w+|"
    r"target cells|burr cells|teardrop.*|sickle cells|red blood cell fragments|basophilic stippling|pappenheimer.*|"
    r"howell.jolly.*|(large|giant) platelets|platelet (smear|clumps)|rbc morphology"
)
RULES: Final = (
    NameRule(
        Kind.LAB_ORDER,
        "a note on the specimen",
        r"\bu?hold\b|\bheld\b|\btop\b|\btubes?\b|\bspecimen\b|\bcollection\b|^(urine |sample )?volume(, total)?$|"
        r"^(site|source)$|\bcomments?\b|\blabel(l?ed)?\b|^delete|^(void|note)\b|\bprobenmaterial\b",
    ),
    NameRule(
        Kind.LAB_ORDER,
        "a setting or an observation at the bedside",
        r"\bpeep\b|\bcpap\b|ventilat|\btidal volume\b|\brespiratory rate\b|assist/?control|\bintubated\b|\bfio2\b|"
        r"^(required )?o(2|xygen)$|\bo(2|xygen) flow\b|^(body )?temperature\b|^minute volume|^(heart|pulse) rate$|"
        r"\bspo2\b|blood pressure|^(body )?(weight|height)$",
    ),
    NameRule(
        Kind.LAB_ORDER,
        "calculated from other results",
        r"\bcalculated\b|\bestimated\b|\be?gfr\b|^anion gap$|^base excess$|\bindirect\b|^mchc?$|^mcv$|^rdw\b|^eag$|"
        r"^alveolar-arterial",
    ),
    NameRule(
        Kind.LAB_ORDER,
        "a description of the specimen by whoever looked at it",
        r"\b(appearance|colou?r|clarity|turbidity|muc(o?us)|casts?|crystals?|epithelial cells|yeast|bacteria)\b|"
        rf"^({_CELLS})$",
    ),
    NameRule(
        Kind.LAB_ORDER,
        "a sign that the specimen is spoiled",
        r"^[hil]$|^ha?emoly(sis|zed|sed|tic index)|^icter(us|ic)|^lipa?emi[ac]",
    ),
    NameRule(Kind.MEDICATION, "a flush of a line", r"\bflush(es)?\b|^sodium chloride prefilled syringe$"),
    NameRule(
        Kind.MEDICATION,
        "a fluid in which drugs are given",
        r"^((1/2|0\.45%?|0\.9%?) ?)?ns\b|^(lr|sw|d5w?|d10w?|d5 ?(1/2 ?)?ns|d5lr)\b|^(0\.9|0\.45) ?% sodium chloride\b|"
        r"^sodium chloride (0\.9|0\.45) ?%|^(5|10) ?% dextrose\b|^dextrose (5|10) ?%|^iso-?osmotic\b|sterile water|"
        r"bacteriostatic|^lactated ringer|^plasma-?lyte",
    ),
    NameRule(
        Kind.MEDICATION,
        "a container, and no drug",
        r"^(\d+([.,]\d+)? ?m?[lg] ?)?(vial|bag|syringe|bottle|ampou?les?|cartridge|kit|tube|needle|pen)s?( given)?$|"
        r"\bdummy package\b",
    ),
)
"""Asked in this order; the first that finds something in a name is why a task is not asked about."""


@dataclass(frozen=True)
class _Panel:
    name: str
    members: tuple[str, ...]  # regular expressions that match names of members whole, in lower case and up to the fluid
    needed: int = 3


_SERUM = r"( \(?serum\)?)?"
_PANELS = (
    _Panel("Blood gas", ("ph", "pco2", "po2", "base excess", "(calculated )?total co2"), 3),
    _Panel(
        "Basic metabolic panel",
        tuple(
            name + _SERUM
            for name in ("sodium", "potassium", "chloride", "bicarbonate|hco3", "urea nitrogen|urea|bun", "creatinine")
        ),
    ),
    _Panel(
        "Blood count",
        ("hematocrit", "hemoglobin", "platelet count|platelets", "white blood cells|wbc( count)?", "red blood cells"),
        2,
    ),
    _Panel("Minerals", ("calcium, total|calcium", "magnesium", "phosphate|phosphorus"), 2),
    _Panel("Differential count", ("neutrophils", "lymphocytes", "monocytes", "eosinophils", "basophils")),
    _Panel(
        "Liver panel",
        (r".*\balt\b.*|alanine.*", r".*\bast\b.*|aspart?arate.*", "alkaline phosphatase", "bilirubin, total"),
    ),
    _Panel("Coagulation tests", (r"inr.*", "pt", "ptt"), 2),
    _Panel(
        "Urinalysis", ("specific gravity", "nitrite", "ketone", "urobilinogen", "urine colou?r", "urine appearance"), 2
    ),
    _Panel(
        "Urine chemistry",
        tuple(
            f"{name}, urine|urine {name}"
            for name in ("sodium", "potassium", "chloride", "creatinine", "osmolality", "urea nitrogen")
        ),
    ),
    _Panel("Iron studies", ("ferritin", "iron", "iron binding capacity.*", "transferrin"), 2),
    _Panel("Cardiac enzymes", (r"creatine kinase \(ck\)|ck", "creatine kinase, mb.*|ck-mb", "troponin.*"), 2),
    _Panel("Bilirubin, direct and indirect", ("bilirubin, direct", "bilirubin, indirect"), 2),
)


def why_no_order(name: str, key: str) -> str:
    """Return what a thing is that nobody orders by its name, to be read after "it is"; "" for an order.

    Examples
    --------
    >>> why_no_order("PEEP [Blood]", "LAB_ORDER/50819")
    'a setting or an observation at the bedside'
    >>> why_no_order("Potassium [Blood]", "LAB_ORDER/50971")
    ''
    """
    kind, _ = task_of(key)
    if not any(each.isalpha() for each in name):
        return NO_NAME
    text = _analyte(name) if kind is Kind.LAB_ORDER else name.casefold()
    return next((rule.reason for rule in RULES if rule.kind is kind and re.search(rule.pattern, text)), "")


def _analyte(name: str) -> str:
    """Return the name of a lab without fluid, category and unit: "Sodium" of "Sodium [Blood]" and "Sodium|Urine"."""
    return re.split(r"\s*[\[|]|\s\((?=[^)]*\)\s*$)", name.casefold())[0].strip()


def members_of(text: str) -> tuple[str, ...]:
    """Return the keys of a panel's members, the commonest first, as the column ``members`` of the tasks holds them."""
    return tuple(text.split(_SEPARATOR)) if text else ()


def panel_key(name: str) -> str:
    """Return the key of a panel, which is made of its name.

    Examples
    --------
    >>> panel_key("Blood gas")
    'LAB_ORDER/panel:blood-gas'
    """
    return task_key(Kind.LAB_ORDER, PANEL + re.sub(r"\W+", "-", name.casefold()))


def panels_and_asked(table: pd.DataFrame) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Mark the tasks that are panels, and those that are asked about by default, each of shape (n_tasks,)."""
    filled = table.reindex(columns=["members", "off"], fill_value="").to_numpy(dtype=object)
    return filled[:, 0] != "", filled[:, 1] == ""


def with_catalogue(tasks: Tasks, named_groups: Mapping[str, Sequence[str]]) -> Tasks:
    """Add a task for each order group of labs, and say which tasks are not asked about by default.

    `named_groups` has the task keys of groups that a site mapping names; their panels keep the name. The given tasks
    keep their columns, then come the panels, decided on where any member is. The table gets the columns ``members``
    (keys of a panel's members, the commonest first, each on a separate line) and ``off`` (why a task is not asked
    about; empty if it is). Both are missing where they would be empty throughout.
    """
    table = tasks.table.reset_index(drop=True)
    keys, names = list(table["task_key"]), list(table["name"])
    off = [_why_off(name, key) for name, key in zip(names, keys, strict=True)]
    rows: list[dict[str, Any]] = []
    columns: list[sparse.csc_matrix] = []
    for group, places in _lab_groups(table).items():
        commonest = sorted(places, key=lambda place: (-int(table["n_positive"][place]), keys[place]))
        orders = [names[place] for place in commonest if not off[place]]
        name = group if group in named_groups else _panel_name([names[place] for place in commonest], orders)
        name = _unique(name, {*names, *(row["name"] for row in rows)})
        key = panel_key(name)
        reasons = dict.fromkeys(off[place] for place in commonest if off[place])
        why = "" if orders else " ".join(["None of it is an order.", *reasons])
        columns.append(sparse.csc_matrix(tasks.decisions[:, places].max(axis=1)).astype(bool))
        rows.append(
            {
                "task_key": _unique(key, {*keys, *(row["task_key"] for row in rows)}),
                "name": name,
                "kind": Kind.LAB_ORDER.value,
                "n_positive": columns[-1].nnz,
                "order_group": group,
                "members": _SEPARATOR.join(keys[place] for place in commonest),
                "off": why,
            }
        )
        for place in places:
            off[place] = why or f"It is asked about as part of {name}."
    if not rows and not any(off):
        return Tasks(table, tasks.decisions)
    table = pd.concat([table.assign(members="", off=off), pd.DataFrame(rows)], ignore_index=True)
    decisions = sparse.csc_matrix(sparse.hstack([tasks.decisions, *columns], format="csc", dtype=bool))
    return Tasks(table.astype({"members": "str", "off": "str"}), decisions)


def _why_off(name: str, key: str) -> str:
    """Return why a task is not asked about, as a sentence."""
    reason = why_no_order(name, key)
    return f"Nobody could judge it: {reason}." if reason == NO_NAME else reason and f"It is {reason}."


def _lab_groups(table: pd.DataFrame) -> dict[str, list[int]]:
    """Return the places of the labs of each order group that has several."""
    labs = table[(table["kind"] == Kind.LAB_ORDER.value) & (table["order_group"] != "")]
    groups = {str(group): list(members.index) for group, members in labs.groupby("order_group", sort=True)}
    return {group: places for group, places in groups.items() if len(places) > 1}


def _panel_name(names: Sequence[str], orders: Sequence[str]) -> str:
    """Return a name for what is ordered together: those of known panels, else the commonest order and how many more."""
    analytes = [_analyte(name) for name in names]
    found = [
        panel.name
        for panel in _PANELS
        if sum(any(re.fullmatch(member, each) for each in analytes) for member in panel.members) >= panel.needed
    ]
    if found and orders:
        return ", ".join([found[0], *(name[0].lower() + name[1:] for name in found[1:])])
    first = ", ".join((orders or names)[0].split("|")[:2])
    return f"{first} and {len(names) - 1} more"


def _unique(name: str, taken: set[str]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    return found
