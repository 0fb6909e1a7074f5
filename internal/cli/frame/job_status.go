package frame

import (
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// StateColour is the colour of a state in tables; "" for none.
func StateColour(state string) string {
	switch state {
	case "running", "starting", "exiting":
		return Green
	case "held", "suspended", "blocked":
		return Yellow
	case "failed":
		return Red
	case "completed", "removed":
		return Dim
	}
	return ""
}

// RunTimeText is how long a job has run; "-" if it has not begun.
func (c *Invocation) RunTimeText(s *scheddapi.JobStatus) string {
	if e := s.GetExit(); e.GetWall() > 0 && document.IsFinal(s) {
		return document.SpanText(time.Duration(e.GetWall()))
	}
	if s.GetStarted() == 0 {
		return "-"
	}
	end := c.Now()
	if s.GetEnded() != 0 {
		end = document.TimeOfNanos(s.GetEnded())
	}
	return document.SpanText(max(end.Sub(document.TimeOfNanos(s.GetStarted())), 0))
}
