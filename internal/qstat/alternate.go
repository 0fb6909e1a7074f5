package qstat

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Alternate is the other list of OpenPBS, that of -a, -i, -r, -u, -n, -s, -H, -G, -M and -T.
type Alternate struct {
	W         io.Writer
	Server    string // the name above the list
	Wide      bool
	Hosts     bool // -n: where each job runs
	Comments  bool // -s
	Behind    bool // -1: both in the job's own line
	Gigabytes bool // -G
	Megawords bool // -M
	Estimates bool // -T: when each starts in place of for how long it has run
	Now       time.Time

	open bool
	held []*Row // -T: they come in the order of their starts
}

// Print adds a job.
func (t *Alternate) Print(r *Row) error {
	if t.Estimates {
		kept := *r
		t.held = append(t.held, &kept)
		return nil
	}
	return t.print(r)
}

// Close prints what was held back for its order: what runs first, by its start, then what is expected to, and last what nobody can say of.
func (t *Alternate) Close() error {
	now := t.Now.Unix()
	slices.SortStableFunc(t.held, func(a, b *Row) int {
		place := func(r *Row) (group int, at int64) {
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
	for _, r := range t.held {
		if err := t.print(r); err != nil {
			return err
		}
	}
	t.held = nil
	return nil
}

// The columns: id, user, queue, name, session, nodes, tasks; the rest is alike in both.
var (
	narrow = [7]int{15, 8, 8, 10, 6, 3, 3}
	broad  = [7]int{30, 15, 15, 15, 8, 4, 5}
	heads  = [7]string{"Job ID", "Username", "Queue", "Jobname", "SessID", "NDS", "TSK"}
)

func (t *Alternate) widths() *[7]int {
	if t.Wide {
		return &broad
	}
	return &narrow
}

func (t *Alternate) head() error {
	w := t.widths()
	var names, dashes strings.Builder
	left := 0
	for i, head := range heads {
		fmt.Fprintf(&names, "%-*s ", w[i], head)
		dashes.WriteString(strings.Repeat("-", w[i]) + " ")
		left += w[i] + 1
	}
	above, last := "", "Elap"
	if t.Estimates {
		last = "Start"
		above = strings.Repeat(" ", left+15) + "Est\n"
	}
	// The two headings differ in how far apart the words stand.
	wanted := fmt.Sprintf("%-7s%-8s%s\n", "Req'd", "Req'd", last)
	if t.Wide {
		wanted = fmt.Sprintf("Req'd  Req'd   %s\n", last)
	} else {
		left = 60
		if t.Estimates {
			above = strings.Repeat(" ", 75) + "Est\n"
		}
	}
	_, err := fmt.Fprintf(t.W, "\n%s: \n%s%s%s%sMemory Time  S Time\n%s------ ----- - -----\n",
		t.Server, above, strings.Repeat(" ", left), wanted, names.String(), dashes.String())
	return err
}

// none stands for what there is not. Columns show as much of it as they have space for.
const none = " -- "

func (t *Alternate) print(r *Row) error {
	if !t.open {
		t.open = true
		if err := t.head(); err != nil {
			return err
		}
	}
	w := t.widths()
	or := func(text string) string {
		if text == "" {
			return none
		}
		return text
	}
	fit := func(text string, width int) string {
		if text = or(text); text == none {
			return text[:min(len(text), width)]
		}
		return cut(text, width)
	}
	plain := func(text string, width int) string { text = or(text); return text[:min(len(text), width)] }
	wanted, spent := r.WantWall, r.Wall
	if r.WantCPU != "" {
		wanted, spent = r.WantCPU, r.CPU
	}
	if t.Estimates {
		spent = "--"
		if strings.Contains("QSB", or(r.State)) {
			spent = estimate(r.Estimate, t.Now)
		}
	}
	end := "\n"
	if t.Behind {
		end = " "
	}
	_, err := fmt.Fprintf(t.W, "%-*s %-*s %-*s %-*s %*s %*s %*s %6s %5s %1s %5s%s", w[0], fit(r.ID, w[0]), w[1], fit(r.User, w[1]), w[2], fit(r.Queue, w[2]),
		w[3], fit(r.Name, w[3]), w[4], fit(r.Session, w[4]), w[5], fit(r.Nodes, w[5]), w[6], fit(r.Tasks, w[6]),
		plain(t.size(r.Memory), 6), plain(wanted, 5), plain(r.State, 1), plain(spent, 5), end)
	if err == nil && t.Hosts {
		err = t.hosts(r.Host)
	}
	if err == nil && t.Comments {
		_, err = fmt.Fprintf(t.W, "   %s\n", Visible(t.comment(or(r.Comment))))
	} else if err == nil && t.Behind && !t.Hosts {
		_, err = io.WriteString(t.W, "\n")
	}
	return err
}

// comment is as much of a comment as a line of OpenPBS has space for.
func (t *Alternate) comment(text string) string {
	most := 74
	if t.Wide {
		most = 114
	}
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-4], "") + "..."
}

// hosts prints where a job runs, the machines without their domains, as many to a line as fit.
func (t *Alternate) hosts(list string) error {
	if list == "" {
		list = none
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
		if t.Behind {
			if before = ""; i+1 < len(all) {
				end = ""
			}
		}
		if _, err := io.WriteString(t.W, before+Visible(line)+end); err != nil {
			return err
		}
	}
	return nil
}
