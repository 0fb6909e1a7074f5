package accounts

import (
	"iter"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// recordNames gives the records of an export pseudonyms, if --pseudonyms asks for them.
type recordNames struct{ pseudonyms *export.Pseudonyms }

// newRecordNames reads the flags. The key is that of --key, or a random one, whose
// pseudonyms no other export has.
func newRecordNames(c *frame.Invocation) (n recordNames, err error) {
	if !c.Flag("pseudonyms") {
		return n, nil
	}
	key, err := traceKey(c)
	if err == nil {
		n.pseudonyms, err = export.NewPseudonyms(key)
	}
	return n, err
}

func (n recordNames) attempts(all iter.Seq2[accounting.AttemptRecord, error]) iter.Seq2[accounting.AttemptRecord,
	error,
] {
	if n.pseudonyms == nil {
		return all
	}
	return n.pseudonyms.Attempts(all)
}

func (n recordNames) jobs(all iter.Seq2[accounting.JobEntry, error]) iter.Seq2[accounting.JobEntry, error] {
	if n.pseudonyms == nil {
		return all
	}
	return n.pseudonyms.Jobs(all)
}

func (n recordNames) machines(all iter.Seq2[accounting.MachineEvent, error]) iter.Seq2[accounting.MachineEvent, error] {
	if n.pseudonyms == nil {
		return all
	}
	return n.pseudonyms.Machines(all)
}
