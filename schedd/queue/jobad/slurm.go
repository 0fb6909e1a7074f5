package jobad

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// SlurmSettings is what a job of sbatch asks for beside its program.
type SlurmSettings struct {
	Append     bool   // to the files of its streams
	Truncate   bool   // them, also when it is run again
	Signal     uint32 // that it gets before its walltime ends; 0: none
	Before     time.Duration
	ScriptOnly bool // the script gets the signal, and not its steps
}

// AttrSlurm is read for these; the rest of it says in Slurm's words what was asked for.
const (
	SlurmOpenMode     = "OpenMode"     // append or truncate
	SlurmSignal       = "Signal"       // a number
	SlurmSignalBefore = "SignalBefore" // in seconds
	SlurmSignalScript = "SignalScript"
)

// Bounds of --signal.
const (
	maxSignal       = 64
	maxSignalBefore = 1<<16 - 1
)

// slurmSettings reads what is done otherwise with a job of sbatch; nil: it is none.
func (r *adReader) slurmSettings() *SlurmSettings {
	if !r.has(roost.AttrSlurm) {
		return nil
	}
	ad, ok := r.ad.Sub(roost.AttrSlurm)
	if !ok {
		r.fail(roost.AttrSlurm, "an ad is wanted")
		return nil
	}
	if r.has(roost.AttrSchedule) || r.boolean(roost.AttrIsFlow, false) {
		r.fail(roost.AttrSlurm, "neither a schedule nor a flow is a job of sbatch")
	}
	own := adReader{ad: ad}
	s := &SlurmSettings{Signal: uint32(own.number(SlurmSignal, 0, 0, maxSignal)),
		Before:     time.Duration(own.number(SlurmSignalBefore, 0, 0, maxSignalBefore)) * time.Second,
		ScriptOnly: own.boolean(SlurmSignalScript, false)}
	switch mode := own.text(SlurmOpenMode, ""); mode {
	case "":
	case "append":
		s.Append = true
	case "truncate":
		s.Truncate = true
	default:
		own.fail(SlurmOpenMode, fmt.Sprintf("%q is neither append nor truncate", mode))
	}
	if own.err != nil {
		r.fail(roost.AttrSlurm, strings.TrimPrefix(own.err.Error(), "attribute "))
	}
	return s
}
