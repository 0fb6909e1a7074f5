package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// queuePosition says where a job stands among what waits, and who comes before it.
func queuePosition(x *scheddapi.Explanation) string {
	if x.GetWaiting() == 0 {
		return ""
	}
	ahead := min(x.GetAhead(), x.GetWaiting()-1)
	text := fmt.Sprintf("It is number %d of %s, as fair share has it now", ahead+1,
		document.Plural(int(x.GetWaiting()), "waiting task"))
	var before []string
	for _, part := range []struct {
		n    uint32
		word string
	}{{x.GetHigher(), "of higher bands"}, {x.GetOwn(), "of its user"},
		{ahead - min(ahead, x.GetHigher()+x.GetOwn()), "of others whose turn comes first"}} {
		if part.n > 0 {
			before = append(before, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	if len(before) > 0 {
		text += ", behind " + strings.Join(before, ", ")
	}
	return text + "."
}

// printStartEstimate says when a job starts, and how sure that is.
func printStartEstimate(c *frame.Invocation, x *scheddapi.Explanation) string {
	if x.GetBasis() == "" {
		return ""
	}
	start := time.Unix(x.GetStart(), 0)
	left := max(start.Sub(c.Now()), 0)
	var text string
	switch {
	case x.GetStart() == 0:
		text = "When it starts is not known"
	case left < time.Minute && x.GetCertainty() == "walltime":
		text = "It starts any moment"
	case x.GetCertainty() == "walltime":
		text = fmt.Sprintf("It starts at %s at the latest, in %s (certain)", c.StartHour(start), roughDuration(left))
	case x.GetCertainty() == "prediction":
		text = fmt.Sprintf("It starts about %s, in %s (likely)", c.StartHour(start), roughDuration(left))
	default:
		text = fmt.Sprintf("It may start in about %s (a guess)", roughDuration(left))
	}
	return text + ": " + x.GetBasis() + "."
}

// roughDuration is a length of time of which nobody wants to know the seconds.
func roughDuration(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", (d+time.Second-1)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", (d+30*time.Second)/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", (d+30*time.Minute)/time.Hour)
	}
	return fmt.Sprintf("%d days", (d+12*time.Hour)/(24*time.Hour))
}
