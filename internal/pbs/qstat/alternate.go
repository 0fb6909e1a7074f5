package qstat

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// AlternateList is OpenPBS's alternate list, of -a, -i, -r, -u, -n, -s, -H, -G, -M and
// -T.
type AlternateList struct {
	Writer    io.Writer
	Server    string // name above the list
	Wide      bool
	Hosts     bool // -n: the hosts of each job
	Comments  bool // -s: comments
	SameLine  bool // -1: hosts and comments in the line of the job
	Gigabytes bool // -G: sizes in gigabytes
	Megawords bool // -M: sizes in megawords
	Estimates bool // -T: estimated starts in place of elapsed times
	Now       time.Time

	headPrinted bool
	pendingRows []*JobRow // -T: rows that are sorted by estimated start before printing
}

// Print prints a job.
func (t *AlternateList) Print(r *JobRow) error {
	if t.Estimates {
		pendingRow := *r
		t.pendingRows = append(t.pendingRows, &pendingRow)
		return nil
	}
	return t.printRow(r)
}

// Close prints the pending rows in order. Running jobs come first, by start, then those
// with an estimate, and last those without.
func (t *AlternateList) Close() error {
	now := t.Now.Unix()
	slices.SortStableFunc(t.pendingRows, func(a, b *JobRow) int {
		place := func(r *JobRow) (group int, at int64) {
			switch {
			case r.Started > 0:
				return 0, r.Started
			case r.Estimate >= now:
				return 1, r.Estimate
			}
			return 2, 0
		}
		ga, ta := place(a)
		gb, tb := place(b)
		return cmp.Or(cmp.Compare(ga, gb), cmp.Compare(ta, tb))
	})
	for _, r := range t.pendingRows {
		if err := t.printRow(r); err != nil {
			return err
		}
	}
	t.pendingRows = nil
	return nil
}

// The columns: id, user, queue, name, session, nodes, tasks. The others are equal in both
// lists.
var (
	narrowWidths = [7]int{15, 8, 8, 10, 6, 3, 3}
	wideWidths   = [7]int{30, 15, 15, 15, 8, 4, 5}
	columnHeads  = [7]string{"Job ID", "Username", "Queue", "Jobname", "SessID", "NDS", "TSK"}
)

func (t *AlternateList) columnWidths() *[7]int {
	if t.Wide {
		return &wideWidths
	}
	return &narrowWidths
}

func (t *AlternateList) printHeader() error {
	w := t.columnWidths()
	var names, dashes strings.Builder
	left := 0
	for i, head := range columnHeads {
		fmt.Fprintf(&names, "%-*s ", w[i], head)
		dashes.WriteString(strings.Repeat("-", w[i]) + " ")
		left += w[i] + 1
	}
	above, last := "", "Elap"
	if t.Estimates {
		last = "Start"
		above = strings.Repeat(" ", left+15) + "Est\n"
	}
	// The two heads differ in the spacing of words.
	wanted := fmt.Sprintf("%-7s%-8s%s\n", "Req'd", "Req'd", last)
	if t.Wide {
		wanted = fmt.Sprintf("Req'd  Req'd   %s\n", last)
	} else {
		left = 60
		if t.Estimates {
			above = strings.Repeat(" ", 75) + "Est\n"
		}
	}
	_, err := fmt.Fprintf(t.Writer, "\n%s: \n%s%s%s%sMemory Time  S Time\n%s------ ----- - -----\n",
		t.Server, above, strings.Repeat(" ", left), wanted, names.String(), dashes.String())
	return err
}

// noValue stands for a missing value. Columns cut it to their width.
const noValue = " -- "

func (t *AlternateList) printRow(r *JobRow) error {
	if !t.headPrinted {
		t.headPrinted = true
		if err := t.printHeader(); err != nil {
			return err
		}
	}
	w := t.columnWidths()
	or := func(text string) string {
		if text == "" {
			return noValue
		}
		return text
	}
	fit := func(text string, width int) string {
		if text = or(text); text == noValue {
			return text[:min(len(text), width)]
		}
		return cutText(text, width)
	}
	plain := func(text string, width int) string { text = or(text); return text[:min(len(text), width)] }
	wanted, spent := r.RequestedWall, r.Wall
	if r.RequestedCPU != "" {
		wanted, spent = r.RequestedCPU, r.CPU
	}
	if t.Estimates {
		spent = "--"
		if strings.Contains("QSB", or(r.State)) {
			spent = estimateText(r.Estimate, t.Now)
		}
	}
	end := "\n"
	if t.SameLine {
		end = " "
	}
	_, err := fmt.Fprintf(t.Writer, "%-*s %-*s %-*s %-*s %*s %*s %*s %6s %5s %1s %5s%s", w[0], fit(r.ID, w[0]), w[1],
		fit(r.User, w[1]), w[2], fit(r.Queue, w[2]),
		w[3], fit(r.Name, w[3]), w[4], fit(r.Session, w[4]), w[5], fit(r.Nodes, w[5]), w[6], fit(r.Tasks, w[6]),
		plain(t.sizeText(r.Memory), 6), plain(wanted, 5), plain(r.State, 1), plain(spent, 5), end)
	if err == nil && t.Hosts {
		err = t.printHosts(r.Host)
	}
	if err == nil && t.Comments {
		_, err = fmt.Fprintf(t.Writer, "   %s\n", VisibleText(t.commentText(or(r.Comment))))
	} else if err == nil && t.SameLine && !t.Hosts {
		_, err = io.WriteString(t.Writer, "\n")
	}
	return err
}

// commentText cuts a comment to the length that a line of OpenPBS has.
func (t *AlternateList) commentText(text string) string {
	most := 74
	if t.Wide {
		most = 114
	}
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-4], "") + "..."
}

// printHosts prints the hosts of a job without domains, as many in a line as fit.
func (t *AlternateList) printHosts(list string) error {
	if list == "" {
		list = noValue
	}
	var all []string
	line := ""
	for _, one := range strings.Split(list, "+") {
		host := ShortHosts(one)
		if line != "" && len(line)+len(host) >= lastColumn-1 {
			all, line = append(all, line), ""
		}
		line += host + "+"
	}
	all = append(all, strings.TrimSuffix(line, "+"))
	for i, line := range all {
		before, end := "   ", "\n"
		if t.SameLine {
			if before = ""; i+1 < len(all) {
				end = ""
			}
		}
		if _, err := io.WriteString(t.Writer, before+VisibleText(line)+end); err != nil {
			return err
		}
	}
	return nil
}
