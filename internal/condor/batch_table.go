package condor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
)

// jobBatch is the procs of one cluster.
type jobBatch struct {
	cluster                        int64
	owner, name                    string
	submitted                      int64
	done, running, idle, held, all int
	first, last                    int64 // procs
}

// batches groups the procs by cluster, in their order.
func batches(ads []*classad.Ad) (list []*jobBatch) {
	byCluster := map[int64]*jobBatch{}
	for _, ad := range ads {
		cluster, proc := number(ad, "ClusterId"), number(ad, "ProcId")
		b := byCluster[cluster]
		if b == nil {
			b = &jobBatch{cluster: cluster, owner: oneWord(ad, "Owner"), name: oneWord(ad, "JobBatchName"),
				submitted: number(ad, "QDate"), first: -1}
			byCluster[cluster] = b
			list = append(list, b)
		}
		if b.all++; !stateOf(ad).IsFinal() {
			b.addProc(proc)
		}
		switch stateOf(ad) {
		case Completed, Removed:
			b.done++
		case Running, TransferringOutput:
			b.running++
		case Held, Suspended:
			b.held++
		default:
			b.idle++
		}
	}
	return list
}

// addProc widens the range of the procs that have not ended.
func (b *jobBatch) addProc(proc int64) {
	if b.first < 0 {
		b.first = proc
	}
	b.first, b.last = min(b.first, proc), max(b.last, proc)
}

// ids writes the range of the procs that have not ended.
func (b *jobBatch) ids() string {
	switch {
	case b.first < 0:
		return strconv.FormatInt(b.cluster, 10)
	case b.first == b.last:
		return fmt.Sprintf("%d.%d", b.cluster, b.first)
	}
	return fmt.Sprintf("%d.%d-%d", b.cluster, b.first, b.last)
}

// BatchLines returns a line for each cluster, as condor_q prints them without -nobatch.
// The column HOLD is there if a job is held.
func (t JobTable) BatchLines(ads []*classad.Ad) string {
	list := batches(ads)
	withHold := false
	for _, b := range list {
		withHold = withHold || b.held > 0
	}
	head := []string{"OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "TOTAL", "JOB_IDS"}
	if withHold {
		head = []string{"OWNER", "BATCH_NAME", "SUBMITTED", "DONE", "RUN", "IDLE", "HOLD", "TOTAL", "JOB_IDS"}
	}
	rows := [][]string{head}
	for _, b := range list {
		row := []string{b.owner, b.name, t.shortTime(b.submitted), dash(b.done), dash(b.running), dash(b.idle)}
		if withHold {
			row = append(row, dash(b.held))
		}
		rows = append(rows, append(row, strconv.Itoa(b.all), b.ids()))
	}
	widths := make([]int, len(head))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len(text))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		for i, text := range row {
			switch {
			case i == len(row)-1:
				out.WriteString(text + "\n")
			case i < 2:
				fmt.Fprintf(&out, "%-*s ", widths[i], text)
			default:
				fmt.Fprintf(&out, "%*s ", max(widths[i], 6), text)
			}
		}
	}
	return out.String()
}

// dash writes a count; HTCondor has an underscore for none.
func dash(n int) string {
	if n == 0 {
		return "_"
	}
	return strconv.Itoa(n)
}
