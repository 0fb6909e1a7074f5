package qstat

import (
	"fmt"
	"io"
	"strings"
)

// Row is a job in a table. Texts that are empty stand for what there is not.
type Row struct {
	ID, Name, User, Queue, State string
	CPU, Wall                    string // used, "00:00:59"
	WantCPU, WantWall            string
	Session, Nodes, Tasks        string
	Memory                       string // asked for, as PBS writes sizes
	Host                         string // exec_host
	Comment                      string
	Started, Estimate            int64 // unix seconds; 0 for unknown
	Subjobs, Expired             int   // of an array
}

// Table is the list that qstat prints without options.
type Table struct {
	w      io.Writer
	wide   bool
	done   bool // with how much is done in place of the time that was used
	torque bool
	open   bool
}

// NewTable returns a list, a job a line. Done is -p.
func NewTable(w io.Writer, wide, done bool) *Table { return &Table{w: w, wide: wide, done: done} }

// NewTorqueTable returns the list of Torque, which has other widths, and of a long name the end.
func NewTorqueTable(w io.Writer) *Table { return &Table{w: w, torque: true} }

// Print adds a line. The first has the heading before it, so that nothing is printed when there is nothing.
func (t *Table) Print(r *Row) error {
	used := r.CPU
	if used == "" {
		used = "0"
	}
	if t.done {
		used = percent(r)
	}
	if !t.open {
		t.open = true
		if err := t.head(); err != nil {
			return err
		}
	}
	id := shortHost(r.ID)
	var err error
	if t.torque {
		_, err = fmt.Fprintf(t.w, "%-25s %-16s %-15s %8s %1s %-15s\n", upTo(r.ID, 33), ending(r.Name, 16), upTo(r.User, 15), upTo(used, 8), upTo(r.State, 1), upTo(r.Queue, 15))
	} else if t.wide {
		_, err = fmt.Fprintf(t.w, "%-30s %-15s %-15s  %8s %1s %-15s\n", cut(id, 30), cutEarly(r.Name, 15), cut(r.User, 15), cut(used, 8), cut(r.State, 1), cut(r.Queue, 15))
	} else {
		_, err = fmt.Fprintf(t.w, "%-17s %-16s %-16s  %8s %1s %-16s\n", cut(id, 17), cutEarly(r.Name, 16), cut(r.User, 16), cut(used, 8), cut(r.State, 1), cut(r.Queue, 16))
	}
	return err
}

func (t *Table) head() error {
	used := "Time Use"
	if t.done {
		used = " % done "
	}
	head := "Job id            Name             User              " + used + " S Queue\n----------------  ---------------- ----------------  -------- - -----\n"
	if t.torque {
		head = "Job ID                    Name             User            Time Use S Queue\n------------------------- ---------------- --------------- -------- - -----\n"
	} else if t.wide {
		head = "Job id                         Name            User             " + used + " S Queue\n-----------------------------  --------------- ---------------  -------- - ---------------\n"
	}
	_, err := io.WriteString(t.w, head)
	return err
}

// shortHost leaves the first part of the host's name.
func shortHost(id string) string {
	seq, host, ok := strings.Cut(id, ".")
	if !ok {
		return id
	}
	host, _, _ = strings.Cut(host, ".")
	return seq + "." + host
}

// cut makes a text fit a column. That something is missing a star at the end says.
func cut(text string, width int) string {
	if len(text) <= width {
		return text
	}
	return text[:width-1] + "*"
}

// cutEarly is cut for the names of jobs, which in PBS's list do not fill their column.
func cutEarly(name string, width int) string {
	if len(name) < width {
		return name
	}
	return name[:width-1] + "*"
}

// upTo is as much of a text as a column of Torque's shows.
func upTo(text string, width int) string { return text[:min(len(text), width)] }

// ending is the end of a text that is too long for a column of Torque's, behind three points.
func ending(text string, width int) string {
	if len(text) <= width {
		return text
	}
	return "..." + text[len(text)-width+3:]
}

// percent is how much of a job is done: of an array the subjobs that have ended, of others the time, whichever of its limits is nearer.
func percent(r *Row) string {
	switch {
	case r.State == "Q" || r.State == "T" || r.State == "W":
		return "-- "
	case r.State == "X":
		return "100"
	case r.Subjobs > 0:
		return fmt.Sprintf("%3d ", r.Expired*100/r.Subjobs)
	}
	most := -1
	for _, of := range [][2]string{{r.CPU, r.WantCPU}, {r.Wall, r.WantWall}} {
		used, ok := seconds(of[0])
		if all, limited := seconds(of[1]); ok && limited && all > 0 {
			most = max(most, used*100/all)
		}
	}
	if most < 0 {
		return "-- "
	}
	return fmt.Sprintf("%3d ", most)
}

// seconds reads "01:02:03".
func seconds(text string) (n int, ok bool) {
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
