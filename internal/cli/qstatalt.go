package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// pbsComments prints the list in PBS's other layout (POSIX knows none; qstat -s of OpenPBS), a job's comment in a line below it, or behind it.
func (c *call) pbsComments(list []*wire.JobStatus, wide, behind bool) {
	if len(list) == 0 {
		return
	}
	widths := []int{15, 8, 8, 10, 6, 3, 3, 6, 5, 1, 5}
	if wide {
		widths = []int{30, 15, 15, 15, 8, 4, 5, 6, 5, 1, 5}
	}
	row := func(numbers bool, cells ...string) string {
		var line []string
		for i, text := range cells {
			if i < 4 || i == 9 || !numbers {
				line = append(line, fmt.Sprintf("%-*s", widths[i], cutPBS(text, widths[i])))
			} else {
				line = append(line, fmt.Sprintf("%*s", widths[i], text))
			}
		}
		return strings.TrimRight(strings.Join(line, " "), " ")
	}
	_, host, _ := strings.Cut(list[0].GetId(), ".")
	fmt.Fprintf(c.stdout, "\n%s: \n", host)
	fmt.Fprintln(c.stdout, row(false, "", "", "", "", "", "", "", "Req'd", "Req'd", "", "Elap"))
	fmt.Fprintln(c.stdout, row(false, "Job ID", "Username", "Queue", "Jobname", "SessID", "NDS", "TSK", "Memory", "Time", "S", "Time"))
	dashes := make([]string, len(widths))
	for i, n := range widths {
		dashes[i] = strings.Repeat("-", n)
	}
	fmt.Fprintln(c.stdout, row(false, dashes...))
	for _, s := range list {
		id := pbsName(s.GetId(), s.GetArray())
		if !wide {
			id = shortHost(id)
		}
		r, limit, used := s.GetRequest().Vector(), "--", "--"
		if walltime := walltimeOf(s.GetAd()); walltime > 0 {
			limit = hoursMinutes(walltime)
		}
		if s.GetStarted() != 0 && !final(s) {
			used = hoursMinutes(c.now().Sub(instant(s.GetStarted())))
		} else if e := s.GetExit(); e != nil {
			used = hoursMinutes(time.Duration(e.GetWall()))
		}
		line := row(true, id, s.GetOwner(), pbsQueue(s), oneWord(s.GetName()), "--", "1", fmt.Sprint(max((int64(r.CPU)+999)/1000, 1)), pbsMemory(r.Memory), limit, pbsState(s), used)
		if behind {
			fmt.Fprintln(c.stdout, line+"   "+c.pbsComment(s))
		} else {
			fmt.Fprintln(c.stdout, line+"\n   "+c.pbsComment(s))
		}
	}
}

// pbsComment is a line about how a job stands: why it waits, where it runs.
func (c *call) pbsComment(s *wire.JobStatus) string {
	switch {
	case s.GetBrief() != "":
		return printable(s.GetBrief())
	case c.comment(s) != "":
		return printable(c.comment(s))
	}
	return "--"
}

// pbsMemory is an amount in six columns.
func pbsMemory(b roost.Bytes) string {
	switch {
	case b <= 0:
		return "--"
	case b%roost.GiB == 0 || b >= 10_000*roost.MiB:
		return fmt.Sprintf("%dgb", (b+roost.GiB-1)/roost.GiB)
	}
	return fmt.Sprintf("%dmb", (b+roost.MiB-1)/roost.MiB)
}

// hoursMinutes is a length of time as PBS's other layout has it, "01:02".
func hoursMinutes(d time.Duration) string {
	m := int64(max(d, 0) / time.Minute)
	return fmt.Sprintf("%02d:%02d", m/60, m%60)
}
