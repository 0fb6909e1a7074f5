"""Progress of tasks, in a terminal or a notebook."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Optional


def _notebook() -> Any:
    """Returns IPython's display function where a notebook shows what is displayed."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display
    return display


class Progress:
    """A line with a bar: how many tasks have ended, failed, and run. Shows nothing elsewhere."""

    def __init__(self, title: str = "tasks", stream: Any = None, interval: float = 0.1) -> None:
        self.title, self.interval = title, interval
        self.stream = stream or sys.stderr
        self._display, self._handle = _notebook(), None
        self._terminal = self._display is None and getattr(self.stream, "isatty", lambda: False)()
        self._last, self._text = 0.0, ""

    def update(self, done: int, total: int, failed: int = 0, running: Optional[int] = None, final: bool = False) -> None:
        """Shows how far it is, at most once in each interval."""
        now = time.monotonic()
        if not final and now - self._last < self.interval:
            return
        self._last = now
        words = ["%d/%d" % (done, total)]
        if running:
            words.append("%d running" % running)
        if failed:
            words.append("%d failed" % failed)
        text = ", ".join(words)
        if self._display is not None:
            self._show_html(done, total, text)
        elif self._terminal:
            filled = 24 * done // max(total, 1)
            line = "%s [%s%s] %s" % (self.title, "#" * filled, "." * (24 - filled), text)
            self.stream.write("\r" + line.ljust(len(self._text)) + ("\n" if final else ""))
            self.stream.flush()
            self._text = line

    def _show_html(self, done: int, total: int, text: str) -> None:
        class Bar:
            def _repr_html_(self) -> str:
                return '<label>%s <progress max="%d" value="%d"></progress> %s</label>' % (
                    html.escape(title), max(total, 1), done, html.escape(text))

            def __repr__(self) -> str:
                return "%s %s" % (title, text)

        title = self.title
        if self._handle is None:
            self._handle = self._display(Bar(), display_id=True)
        elif self._handle is not None:
            self._handle.update(Bar())
