package nodes

import (
	"fmt"
	"io"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qstat"
)

const noValue = "--" // for missing values

// The heads of the two tables, with the columns of OpenPBS. The column of MICs remains
// for clients that look for it.
const (
	jobsHeader = "                                                        mem       ncpus   nmics   ngpus\n" +
		"vnode           state           njobs   run   susp      f/t        f/t     f/t     f/t   jobs\n" +
		"--------------- --------------- ------ ----- ------ ------------ ------- ------- ------- -------\n"
	nodesHeader = "vnode           state           OS       hardware host            queue        mem     ncpus   " +
		"nmics   ngpus  comment\n" +
		"--------------- --------------- -------- -------- --------------- ---------- -------- ------- ------- " +
		"------- ---------\n"
)

// summaryRow is a node's row in the tables.
type summaryRow struct {
	name, state, host, comment string
	jobs                       []string
	running, suspended         int
	mem, cpus, mics, gpus      string
}

// summaryRowOf returns a node's row. With jobs, the free amount is before the total.
// Without long, only the first word of the state is used.
func summaryRowOf(n *Node, jobs, long bool) summaryRow {
	r := summaryRow{name: n.Name, state: n.State(), host: n.Host, comment: n.Comment, jobs: n.jobIDs(), mics: "0"}
	if first, _, _ := strings.Cut(r.state, ","); !long {
		r.state = first
	}
	if r.comment == "" {
		r.comment = noValue
	}
	if r.host == "" {
		r.host = noValue
	}
	seen := map[string]bool{}
	for _, j := range n.Jobs {
		if seen[j.ID] {
			continue
		}
		if seen[j.ID] = true; j.Suspended {
			r.suspended++
		} else {
			r.running++
		}
	}
	r.mem, r.cpus, r.gpus = shortSize(n.Memory), fmt.Sprint(n.CPUs), fmt.Sprint(n.GPUs)
	if jobs {
		r.mem = shortSize(max(n.Memory-n.UsedMem, 0)) + "/" + r.mem
		r.cpus = fmt.Sprintf("%d/%d", n.CPUs-n.usedCPUs(), n.CPUs)
		r.gpus, r.mics = fmt.Sprintf("%d/%d", n.GPUs-n.UsedGPUs, n.GPUs), "0/0"
	}
	return r
}

// shortSize formats memory with at most three digits, rounded up from kilobytes.
func shortSize(b roost.Bytes) string {
	n, unit := (b+roost.KiB-1)/roost.KiB, 0
	for ; n > 999 && unit < 4; unit++ {
		n = (n + n%1024) >> 10
	}
	return fmt.Sprintf("%d%cb", n, "kmgtp"[unit])
}

// summaryPrinter is -S: a table of nodes, with -j of their jobs. -L makes it as wide as
// needed, and -F dsv delimits the columns.
type summaryPrinter struct {
	w                io.Writer
	jobs, wideFormat bool
	delimiter        string
	headPrinted      bool
}

func (s *summaryPrinter) Print(n *Node) error {
	r := summaryRowOf(n, s.jobs, s.wideFormat)
	if s.delimiter != "" {
		return s.printDelimited(&r)
	}
	head := ""
	if !s.headPrinted {
		if s.headPrinted, head = true, nodesHeader; s.jobs {
			head = jobsHeader
		}
	}
	cut := func(text string, width int) string {
		if !s.wideFormat && len(text) > width {
			return text[:width]
		}
		return text
	}
	var err error
	if s.jobs {
		_, err = fmt.Fprintf(s.w, "%s%-15s %-15s %6d %5d %6d %12s %7s %7s %7s %s\n", head, cut(r.name, 15),
			cut(r.state, 15), r.running+r.suspended, r.running, r.suspended,
			cut(r.mem, 12), cut(r.cpus, 7), r.mics, cut(r.gpus, 7), r.jobList())
		return err
	}
	_, err = fmt.Fprintf(s.w, "%s%-15s %-15s %-8s %-8s %-15s %-10s %8s %7s %7s %7s %s\n", head, cut(r.name, 15),
		cut(r.state, 15), noValue, noValue, cut(r.host, 15), noValue,
		cut(r.mem, 8), cut(r.cpus, 7), r.mics, cut(r.gpus, 7), qstat.VisibleText(r.comment))
	return err
}

// jobList joins the jobs with commas.
func (r *summaryRow) jobList() string {
	if len(r.jobs) == 0 {
		return noValue
	}
	return strings.Join(r.jobs, ",")
}

func (s *summaryPrinter) printDelimited(r *summaryRow) error {
	fields := []string{"vnode=" + r.name, "state=" + r.state}
	if s.jobs {
		fields = append(fields, fmt.Sprintf("njobs=%d", r.running+r.suspended), fmt.Sprintf("run=%d", r.running),
			fmt.Sprintf("susp=%d", r.suspended),
			"mem(f/t)="+r.mem, "ncpus(f/t)="+r.cpus, "nmics(f/t)="+r.mics, "ngpus(f/t)="+r.gpus, "jobs="+r.jobList())
	} else {
		fields = append(fields, "OS="+noValue, "hardware="+noValue, "host="+r.host, "queue="+noValue, "mem="+r.mem,
			"ncpus="+r.cpus, "nmics="+r.mics, "ngpus="+r.gpus,
			"comment="+qstat.VisibleText(r.comment))
	}
	_, err := fmt.Fprintln(s.w, strings.Join(fields, s.delimiter))
	return err
}

func (s *summaryPrinter) Unknown(string) (bool, error) { return false, nil }
func (s *summaryPrinter) Close() error                 { return nil }
