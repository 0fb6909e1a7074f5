package condor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
)

// JobTable prints ads as the tables of condor_q and condor_history.
type JobTable struct {
	Schedd string    // name of the schedd, for the first line
	Now    time.Time // its location is that of all times
}

// shortTime writes unix seconds as "11/29 22:00".
func (t JobTable) shortTime(unix int64) string {
	return time.Unix(unix, 0).In(t.Now.Location()).Format("1/02 15:04")
}

// runTime writes seconds as "0+00:01:02".
func runTime(seconds int64) string {
	seconds = max(seconds, 0)
	return fmt.Sprintf("%d+%02d:%02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60, seconds%60)
}

// Title is the line ahead of a table.
func (t JobTable) Title() string {
	return fmt.Sprintf("\n\n-- Schedd: %s : <%s> @ %s\n", t.Schedd, t.Schedd, t.Now.Format("01/02/06 15:04:05"))
}

// JobLines returns a line for each job, as -nobatch prints them.
func (t JobTable) JobLines(ads []*classad.Ad) string {
	var b strings.Builder
	b.WriteString(" ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD\n")
	for _, ad := range ads {
		fmt.Fprintf(&b, "%4d.%-3d %-14s %11s %12s %-2s %-3d %-4.1f %s\n", number(ad, "ClusterId"), number(ad, "ProcId"),
			oneWord(ad, "Owner"), t.shortTime(number(ad, "QDate")), runTime(t.ranFor(ad)), stateOf(ad).Letter(),
			number(ad, "JobPrio"), float64(number(ad, "MemoryUsage")), commandText(ad))
	}
	return b.String()
}

// HoldLines returns a line for each held job with the reason, as -hold prints them.
func (t JobTable) HoldLines(ads []*classad.Ad) string {
	var b strings.Builder
	b.WriteString(" ID      OWNER          HELD_SINCE  HOLD_REASON\n")
	for _, ad := range ads {
		reason, _ := ad.Str("HoldReason")
		fmt.Fprintf(&b, "%4d.%-3d %-14s %-11s %s\n", number(ad, "ClusterId"), number(ad, "ProcId"),
			oneWord(ad, "Owner"), t.shortTime(number(ad, "EnteredCurrentStatus")), document.PrintableText(reason))
	}
	return b.String()
}

// HistoryLines returns a line for each job that has ended.
func (t JobTable) HistoryLines(ads []*classad.Ad) string {
	var b strings.Builder
	b.WriteString(" ID      OWNER            SUBMITTED     RUN_TIME ST   COMPLETED CMD\n")
	for _, ad := range ads {
		ended := "???"
		if at := number(ad, "CompletionDate"); at != 0 {
			ended = t.shortTime(at)
		}
		fmt.Fprintf(&b, "%4d.%-3d %-14s %11s %12s %-2s %11s %s\n", number(ad, "ClusterId"), number(ad, "ProcId"),
			oneWord(ad, "Owner"), t.shortTime(number(ad, "QDate")), runTime(t.ranFor(ad)), stateOf(ad).Letter(), ended,
			commandText(ad))
	}
	return b.String()
}

// ranFor returns for how many seconds a job has run.
func (t JobTable) ranFor(ad *classad.Ad) int64 {
	state := stateOf(ad)
	if wall, _ := ad.Real("RemoteWallClockTime"); wall > 0 && state.IsFinal() {
		return int64(wall)
	}
	if began, ok := ad.Int("JobCurrentStartDate"); ok && (state == Running || state == TransferringOutput ||
		state == Suspended) {
		return t.Now.Unix() - began
	}
	return 0
}

func number(ad *classad.Ad, name string) int64 { n, _ := ad.Int(name); return n }

func stateOf(ad *classad.Ad) StateNumber { return StateNumber(number(ad, "JobStatus")) }

// oneWord returns a text as one column: without blanks, so that those behind it keep
// their places.
func oneWord(ad *classad.Ad, name string) string {
	text, _ := ad.Str(name)
	return strings.ReplaceAll(document.PrintableText(text), " ", "_")
}

// commandText returns the file name of the program with its arguments.
func commandText(ad *classad.Ad) string {
	cmd, _ := ad.Str("Cmd")
	args, _ := ad.Str("Args")
	return document.PrintableText(strings.TrimRight(cmd[strings.LastIndexByte(cmd, '/')+1:]+" "+args, " "))
}

// Totals returns the last lines of a table: the jobs by state.
func Totals(ads []*classad.Ad, owner string) string {
	var b strings.Builder
	writeTotal(&b, "query", ads)
	if owner != "" {
		writeTotal(&b, owner, slices.DeleteFunc(slices.Clone(ads), func(ad *classad.Ad) bool {
			text, _ := ad.Str("Owner")
			return text != owner
		}))
	}
	return b.String()
}

func writeTotal(b *strings.Builder, of string, ads []*classad.Ad) {
	var counts [Suspended + 1]int
	for _, ad := range ads {
		if n := stateOf(ad); n >= Idle && n <= Suspended {
			counts[n]++
		}
	}
	fmt.Fprintf(b, "Total for %s: %d jobs; %d completed, %d removed, %d idle, %d running, %d held, %d suspended \n", of,
		len(ads), counts[Completed], counts[Removed], counts[Idle], counts[Running]+counts[TransferringOutput],
		counts[Held], counts[Suspended])
}
