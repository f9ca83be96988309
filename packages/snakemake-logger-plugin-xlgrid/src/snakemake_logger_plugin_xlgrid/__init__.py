"""Snakemake logger that shows a run of xlgrid on one screen: stages, the time left, trainings in progress, failures.

`handler.py` takes Snakemake's events, `workflow.py` knows what follows from them, and `displays.py` shows it: on a terminal, or
in plain lines where there is none. Each run of Snakemake imports this module, whichever logger it uses, so that all else
is imported when the logger begins.
"""

from dataclasses import dataclass, field
from logging import LogRecord
from typing import TYPE_CHECKING

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

if TYPE_CHECKING:
    from snakemake_logger_plugin_xlgrid.handler import Follower


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """`snakemake --logger-xlgrid-...`."""

    seconds: int = field(
        default=60,
        metadata={
            "help": "Seconds between two lines where there is no terminal; later in a long run, lines are further apart "
            "(default: 60).",
            "env_var": False,
            "required": False,
        },
    )


class LogHandler(LogHandlerBase):
    """Passes Snakemake's events on to what follows the run."""

    follower: "Follower"

    def __post_init__(self) -> None:
        from snakemake_logger_plugin_xlgrid.handler import follower

        assert isinstance(self.settings, LogHandlerSettings)
        self.follower = follower(self.common_settings, self.settings.seconds)

    def emit(self, record: LogRecord) -> None:
        try:
            self.follower.take(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        self.follower.close()
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return True

    @property
    def has_formatter(self) -> bool:
        return True

    @property
    def needs_rulegraph(self) -> bool:
        return False
