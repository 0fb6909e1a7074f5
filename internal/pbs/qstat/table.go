package qstat

import (
	"fmt"
	"io"
	"strings"
)

// JobRow is a job's row in a table. Empty texts are missing values.
type JobRow struct {
	ID, Name, User, Queue, State string
	CPU, Wall                    string // time used, as "00:00:59"
	RequestedCPU, RequestedWall  string
	Session, Nodes, Tasks        string
	Memory                       string // memory requested, in PBS's format
	Host                         string // exec_host
	Comment                      string
	Started, Estimate            int64 // unix seconds; 0: unknown
	Subjobs, Expired             int   // of an array: number of tasks, and of ended ones
}

// JobTable is the list of qstat without options.
type JobTable struct {
	w           io.Writer
	wide        bool
	percentDone bool // show the completed part in place of the time used
	torque      bool
	headPrinted bool
}

// NewTable returns the list with a line for each job. done is -p.
func NewTable(w io.Writer, wide, done bool) *JobTable {
	return &JobTable{w: w, wide: wide, percentDone: done}
}

// NewTorqueTable returns Torque's list. It has other widths, and shows the end of a long
// name.
func NewTorqueTable(w io.Writer) *JobTable { return &JobTable{w: w, torque: true} }

// Print prints a job. The head comes before the first job, so an empty list prints
// nothing.
func (t *JobTable) Print(r *JobRow) error {
	used := r.CPU
	if used == "" {
		used = "0"
	}
	if t.percentDone {
		used = percentDone(r)
	}
	if !t.headPrinted {
		t.headPrinted = true
		if err := t.printHeader(); err != nil {
			return err
		}
	}
	id := shortHostName(r.ID)
	var err error
	if t.torque {
		_, err = fmt.Fprintf(t.w, "%-25s %-16s %-15s %8s %1s %-15s\n", truncateText(r.ID, 33), cutTail(r.Name, 16),
			truncateText(r.User, 15), truncateText(used, 8), truncateText(r.State, 1), truncateText(r.Queue, 15))
	} else if t.wide {
		_, err = fmt.Fprintf(t.w, "%-30s %-15s %-15s  %8s %1s %-15s\n", cutText(id, 30), cutJobName(r.Name, 15),
			cutText(r.User, 15), cutText(used, 8), cutText(r.State, 1), cutText(r.Queue, 15))
	} else {
		_, err = fmt.Fprintf(t.w, "%-17s %-16s %-16s  %8s %1s %-16s\n", cutText(id, 17), cutJobName(r.Name, 16),
			cutText(r.User, 16), cutText(used, 8), cutText(r.State, 1), cutText(r.Queue, 16))
	}
	return err
}

func (t *JobTable) printHeader() error {
	used := "Time Use"
	if t.percentDone {
		used = " % done "
	}
	head := "Job id            Name             User              " + used +
		" S Queue\n----------------  ---------------- ----------------  -------- - -----\n"
	if t.torque {
		head = "Job ID                    Name             User            Time Use S " +
			"Queue\n------------------------- ---------------- --------------- -------- - -----\n"
	} else if t.wide {
		head = "Job id                         Name            User             " + used +
			" S Queue\n-----------------------------  --------------- ---------------  -------- - ---------------\n"
	}
	_, err := io.WriteString(t.w, head)
	return err
}

// shortHostName cuts the host of a job id at its first dot.
func shortHostName(id string) string {
	seq, host, ok := strings.Cut(id, ".")
	if !ok {
		return id
	}
	host, _, _ = strings.Cut(host, ".")
	return seq + "." + host
}

// cutText cuts a text to the width of a column and marks the cut with a star.
func cutText(text string, width int) string {
	if len(text) <= width {
		return text
	}
	return text[:width-1] + "*"
}

// cutJobName cuts a job name, which must be shorter than its column in PBS's list.
func cutJobName(name string, width int) string {
	if len(name) < width {
		return name
	}
	return name[:width-1] + "*"
}

// truncateText cuts a text to the width of a column of Torque's list.
func truncateText(text string, width int) string { return text[:min(len(text), width)] }

// cutTail cuts the start of a text that is longer than a column of Torque's list.
func cutTail(text string, width int) string {
	if len(text) <= width {
		return text
	}
	return "..." + text[len(text)-width+3:]
}

// percentDone returns the completed part of a job. For an array it is that of its ended
// tasks, for other jobs the larger part of its time limits.
func percentDone(r *JobRow) string {
	switch {
	case r.State == "Q" || r.State == "T" || r.State == "W":
		return "-- "
	case r.State == "X":
		return "100"
	case r.Subjobs > 0:
		return fmt.Sprintf("%3d ", r.Expired*100/r.Subjobs)
	}
	most := -1
	for _, of := range [][2]string{{r.CPU, r.RequestedCPU}, {r.Wall, r.RequestedWall}} {
		used, ok := parseSeconds(of[0])
		if all, limited := parseSeconds(of[1]); ok && limited && all > 0 {
			most = max(most, used*100/all)
		}
	}
	if most < 0 {
		return "-- "
	}
	return fmt.Sprintf("%3d ", most)
}

// parseSeconds parses a time like "01:02:03" into seconds.
func parseSeconds(text string) (n int, ok bool) {
	if text == "" {
		return 0, false
	}
	for _, field := range strings.Split(text, ":") {
		part := 0
		for _, c := range field {
			if c < '0' || c > '9' {
				return 0, false
			}
			part = part*10 + int(c-'0')
		}
		n = n*60 + part
	}
	return n, true
}
