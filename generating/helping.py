"""The dashboard that answers one question: does Reberth help this cluster."""

from generating.health import EXTENDER, TRUST, WELL
from generating.moves import DOING, HELPING, NODES
from generating.panels import Dashboard

IS_IT_HELPING = Dashboard(
    "Reberth: is it helping?",
    "reberth-helping",
    "Moves, what they brought, and whether the forecast, the brakes and the extender can be trusted.",
    (HELPING, NODES, DOING, TRUST, WELL, EXTENDER),
)
