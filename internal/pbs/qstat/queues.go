package qstat

import (
	"fmt"
	"io"
	"strconv"
)

// StateCounts counts the jobs of a queue or a server by state. As in OpenPBS, each task
// of an array counts.
type StateCounts struct{ Transit, Queued, Held, Waiting, Running, Exiting, Begun int }

// Total returns the number of all jobs.
func (c StateCounts) Total() int {
	return c.Transit + c.Queued + c.Held + c.Waiting + c.Running + c.Exiting + c.Begun
}

// Text returns the value of state_count.
func (c StateCounts) Text() string {
	return fmt.Sprintf("Transit:%d Queued:%d Held:%d Waiting:%d Running:%d Exiting:%d Begun:%d ", c.Transit, c.Queued,
		c.Held, c.Waiting, c.Running, c.Exiting, c.Begun)
}

// Add counts n more jobs in a state, given by its letter. Suspended jobs count as
// running.
func (c *StateCounts) Add(letter string, n int) {
	switch letter {
	case "T":
		c.Transit += n
	case "Q":
		c.Queued += n
	case "H":
		c.Held += n
	case "W":
		c.Waiting += n
	case "R", "S", "U":
		c.Running += n
	case "E":
		c.Exiting += n
	case "B":
		c.Begun += n
	}
}

// QueueRow is a queue's row in a table.
type QueueRow struct {
	Name             string
	Enabled, Started bool
	MaxRun           string // empty: unlimited
	Memory, CPU      string // most that a job may request; empty: unlimited
	Walltime, Nodes  string
	Type             string
	StateCounts
}

// QueueTable prints the table of qstat -Q.
func QueueTable(w io.Writer, rows []QueueRow) error {
	_, err := io.WriteString(w, "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n"+
		"---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n")
	for i := range rows {
		r := &rows[i]
		if err == nil {
			_, err = fmt.Fprintf(w, "%-16s %5s %5s %3s %3s %5s %5s %5s %5s %5s %5s %-4s\n", cutText(r.Name, 16),
				cutText(textOrZero(r.MaxRun), 5), numberOrDashes(r.Total()), yesOrNo(r.Enabled), yesOrNo(r.Started),
				numberOrDashes(r.Queued), numberOrDashes(r.Running), numberOrDashes(r.Held), numberOrDashes(r.Waiting),
				numberOrDashes(r.Transit), numberOrDashes(r.Exiting), cutText(r.Type, 4))
		}
	}
	return err
}

func numberOrDashes(n int) string { return cutText(strconv.Itoa(n), 5) }

func textOrZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// QueueLimits prints the table of qstat -q.
func QueueLimits(w io.Writer, server string, rows []QueueRow, gigabytes, megawords bool) error {
	_, err := fmt.Fprintf(w, "\nserver: %s\n\nQueue            Memory CPU Time Walltime Node   Run   Que   Lm  State\n"+
		"---------------- ------ -------- -------- ---- ----- ----- ----  -----\n", server)
	or := func(text, otherwise string, width int) string {
		if text == "" {
			text = otherwise
		}
		return text[:min(len(text), width)]
	}
	run, wait := 0, 0
	for i := range rows {
		r := &rows[i]
		enabled, started := 'D', 'S'
		if r.Enabled {
			enabled = 'E'
		}
		if r.Started {
			started = 'R'
		}
		waiting := r.Queued + r.Held + r.Waiting
		run, wait = run+r.Running, wait+waiting
		memory := r.Memory
		if memory != "" {
			memory = sizeIn(memory, gigabytes, megawords)
		}
		const no = "  --   "
		if err == nil {
			_, err = fmt.Fprintf(w, "%-16.16s %6s %8s %8s %4s %5d %5d %4s   %c %c\n", r.Name, or(memory, "--  ", 6),
				or(r.CPU, no, 8), or(r.Walltime, no, 8), or(r.Nodes, "-- ", 4),
				r.Running, waiting, or(r.MaxRun, no, 4), enabled, started)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "%47s----- -----\n%47s%5d %5d\n", "", "", run, wait)
	}
	return err
}

// ServerRow is a server's row in the table of qstat -B.
type ServerRow struct {
	Name, Status string
	MaxRun       string // empty: unlimited
	StateCounts
}

// ServerTable prints the table of qstat -B.
func ServerTable(w io.Writer, rows []ServerRow) error {
	_, err := io.WriteString(w, "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n"+
		"---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n")
	for i := range rows {
		r := &rows[i]
		if err == nil {
			_, err = fmt.Fprintf(w, "%-16s %5s %5s %5s %5s %5s %5s %5s %5s %-10s\n", cutText(r.Name, 16),
				cutText(textOrZero(r.MaxRun), 5), numberOrDashes(r.Total()), numberOrDashes(r.Queued),
				numberOrDashes(r.Running), numberOrDashes(r.Held),
				numberOrDashes(r.Waiting), numberOrDashes(r.Transit), numberOrDashes(r.Exiting), cutText(r.Status, 10))
		}
	}
	return err
}
