package sacct

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// XDMoDFormat is the list of fields that the shredder of Open XDMoD reads, in its order.
// The name is last, because it may contain the delimiter.
const XDMoDFormat = "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end," +
	"elapsed,exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname"

// xdmodTextBytes bounds a text for XDMoD, whose tables take no longer name. Its shredder
// gives up a file that has one.
const xdmodTextBytes = 255

// XDMoDPrinter prints attempts that ran and ended, for xdmod-shredder -f slurm. It leaves
// out all others, since the shredder would.
type XDMoDPrinter struct{ *LinePrinter }

// NewXDMoD returns a printer for XDMoD. The cluster is the name of its resource.
func NewXDMoD(w io.Writer, cluster string) (*XDMoDPrinter, error) {
	columns, err := ParseFormat(XDMoDFormat)
	if err != nil {
		return nil, err
	}
	lines, err := NewLines(w, columns, Options{Cluster: cluster, Location: time.UTC}, false, "|", false)
	if err != nil {
		return nil, err
	}
	lines.writer.most, lines.lastWriter.most = xdmodTextBytes, xdmodTextBytes
	return &XDMoDPrinter{lines}, nil
}

// Print prints a row. A number of a job that does not fit the tables of XDMoD is an
// error.
func (p *XDMoDPrinter) Print(r *accounting.AttemptRecord) error {
	if r.Started == 0 || r.Ended == 0 || r.Cause == accounting.NotEnded {
		return nil
	}
	if r.Job.Seq > math.MaxUint32 {
		return fmt.Errorf("job %d.%s: %w: XDMoD takes job numbers up to %d", r.Job.Seq, r.Job.Host, roost.Invalid,
			uint32(math.MaxUint32))
	}
	return p.LinePrinter.Print(r)
}

// WriteXDMoD prints attempts for XDMoD as they come. It ends at the first error of
// attempts, or of w.
func WriteXDMoD(w io.Writer, cluster string, attempts iter.Seq2[accounting.AttemptRecord, error]) error {
	p, err := NewXDMoD(w, cluster)
	if err != nil {
		return err
	}
	for a, err := range attempts {
		if err == nil {
			err = p.Print(&a)
		}
		if err != nil {
			return errors.Join(err, p.Close())
		}
	}
	return p.Close()
}
