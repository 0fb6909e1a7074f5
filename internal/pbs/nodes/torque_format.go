package nodes

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/pbs/qstat"
)

// The node formats of Torque (its pbsnodes(8)). There are fewer attributes, the measured
// values are all in "status", and two states have other names.

// TorqueState returns the node's state in Torque's words.
func (n *Node) TorqueState() string {
	state := strings.NewReplacer("job-busy", "job-exclusive", "resv-exclusive", "reserve", ",sleep", "", "sleep",
		"free").Replace(n.State())
	return strings.Replace(state, "state-unknown,down", "down", 1)
}

// IsWanted reports whether pbsnodes -l lists the node. With a state those in that state
// are listed, otherwise those that IsUnavailable selects.
func (o *CommandOptions) IsWanted(n *Node) bool {
	state := n.TorqueState()
	switch o.Wanted {
	case "":
		return n.IsUnavailable()
	case "all":
		return true
	case "up":
		return !n.IsUnavailable()
	case "active":
		return len(n.Jobs) > 0
	}
	return strings.Contains(state, o.Wanted)
}

// torqueAttributes returns the attributes of a node.
func (n *Node) torqueAttributes(now time.Time) (list []qstat.ObjectAttribute) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, qstat.ObjectAttribute{Name: name, Value: value})
		}
	}
	power := "Running"
	if n.Condition.Asleep {
		power = "Standby"
	}
	add("state", n.TorqueState())
	add("power_state", power)
	add("np", strconv.Itoa(n.CPUs))
	add("ntype", "cluster")
	add("jobs", n.torqueJobs())
	if !n.Condition.Unknown && !n.Condition.Down {
		state := "free" // the machine's own view, as one word: commas separate the list
		if n.Condition.Busy || n.isFull() {
			state = "busy"
		}
		add("status", fmt.Sprintf("rectime=%d,opsys=%s,ncpus=%d,physmem=%s,availmem=%s,state=%s,jobs=%s", now.Unix(),
			cmp.Or(n.Arch, "linux"), n.CPUs, kilobytes(n.Memory),
			kilobytes(max(n.Memory-n.UsedMem, 0)), state, strings.Join(n.jobIDs(), " ")))
	}
	add("note", n.Comment)
	add("gpus", nonNegative(n.GPUs))
	return list
}

// torqueJobs lists the processors of the jobs: "0-1/12.srv,2/15.srv".
func (n *Node) torqueJobs() string {
	var parts []string
	next := 0
	for _, j := range n.Jobs {
		last := next + max(j.CPUs, 1) - 1
		at := strconv.Itoa(next)
		if last > next {
			at += "-" + strconv.Itoa(last)
		}
		parts, next = append(parts, at+"/"+j.ID), last+1
	}
	return strings.Join(parts, ",")
}

// torqueLinePrinter is Torque's default format.
type torqueLinePrinter struct {
	w   io.Writer
	now time.Time
}

func (l *torqueLinePrinter) Print(n *Node) error {
	b := append([]byte(n.Name), '\n')
	for _, a := range n.torqueAttributes(l.now) {
		b = append(append(append(append(b, "     "...), a.Name...), " = "...), qstat.VisibleText(a.Value)...)
		b = append(b, '\n')
	}
	_, err := l.w.Write(append(b, '\n'))
	return err
}

func (l *torqueLinePrinter) Unknown(string) (bool, error) { return false, nil }
func (l *torqueLinePrinter) Close() error                 { return nil }

// torqueXMLPrinter is Torque's -x.
type torqueXMLPrinter struct {
	tree qstat.FullPrinter
	now  time.Time
}

func (t *torqueXMLPrinter) Print(n *Node) error {
	return t.tree.Print(&qstat.Object{Kind: qstat.Nodes, Name: n.Name, Attributes: n.torqueAttributes(t.now)})
}

func (t *torqueXMLPrinter) Unknown(string) (bool, error) { return false, nil }
func (t *torqueXMLPrinter) Close() error                 { return t.tree.Close() }
