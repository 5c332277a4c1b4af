"""The dashboard of the rescheduler and the extender."""

from generating.health_rows import EXTENDER, TRUST, WELL
from generating.move_rows import DOING, HELPING, NODES
from generating.panels import Dashboard

RESCHEDULER_DASHBOARD = Dashboard(
    "Reberth: rescheduler and extender",
    "reberth-rescheduler",
    "Moves and their outcomes, the accuracy of the forecast, brakes, and the health of rescheduler and"
    " extender.",
    (HELPING, NODES, DOING, TRUST, WELL, EXTENDER),
    "reberth_settings_valid",
)
