package claim

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starterclient"
)

// Attempt is one execution on a claim. The claim's runner owns it. Transfers of files
// only read what does not change, between AcquireFiles and ReleaseFiles.
type Attempt struct {
	machine       *Machine
	id            roost.AttemptID
	ref           starterclient.TaskAttempt
	record        attemptRecord
	name          string                   // of its job
	cred          userfiles.UserCredential // whose files its own are
	agent         *userfiles.Agent         // with the user's rights; nil until it is needed
	program       *wire.Program            // until it is started
	inputPatterns []string                 // patterns of the input that its program names
	disk          roost.Bytes              // that it may use; 0: it did not ask for any
	// its scratch directory is there, and its input is awaited before the start
	mustAwaitInput bool
	launchDone     chan struct{}             // closed when the starter was told, or will never be
	ended          chan struct{}             // closed when it has ended
	recordedExit   *wire.Exited              // set before over is closed
	outputs        []userfiles.TransferEntry // likewise: what may be fetched
	ctx            context.Context           // ended when its files are to be removed
	cancel         context.CancelFunc

	scripts        scriptProgress  // the runner's
	checkpoint     checkpointState // likewise
	pendingSignals []unix.Signal   // likewise: what it is to be sent when it is started, each once
	outputMessages pendingOutputMessages
	spawnSlots     atomic.Int32 // those of them that its own job wants
	shellSlots     atomic.Int32 // that are open in it
	sessionDecided atomic.Bool  // of an interactive one: it has or had its terminal, or will never have it
	mu             sync.Mutex
	users          sync.WaitGroup
	closed         bool

	container      containerState     // the runner's
	secrets        []*wire.SecretText // the runner's: until it is launched
	secretVersions atomic.Pointer[[]*wire.SecretText]

	service serviceState // the runner's
	isStill atomic.Bool  // it is suspended, or frozen for a checkpoint

	leaseOverReason string // the runner's: why its lease is over, once its end was ordered for that
}

func (m *Machine) newAttempt(id roost.AttemptID, cred userfiles.UserCredential, p *wire.Program) *Attempt {
	a := &Attempt{
		machine: m, id: id, cred: cred, program: p, inputPatterns: p.GetInputs(), name: p.GetJobName(),
		launchDone: make(chan struct{}), ended: make(chan struct{}),
		ref: starterclient.TaskAttempt{Job: id.Task.Job.Seq, Index: uint32(id.Task.Index), Number: uint32(id.Attempt)},
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.checkpoint.mayBeStaged = p.GetRestore() != nil
	a.record = attemptRecord{Job: a.ref.Job, Index: a.ref.Index, Attempt: a.ref.Number, Name: a.name}
	if known := p.GetPbsId(); strings.Contains(known, "[") {
		a.record.Known = known
	}
	return a
}

// Label returns what people call the attempt, such as "12[15].host/1". The array's index
// 15 stands for its sixth task there, as its owner gave it and as all commands have it.
func (a *Attempt) Label() string {
	if a.record.Known == "" {
		return a.id.String()
	}
	return fmt.Sprintf("%s/%d", a.record.Known, a.id.Attempt)
}

// adoptedAttempt is an attempt that an earlier startd has started. What the record does
// not know of it, it does without.
func (m *Machine) adoptedAttempt(schedd string, ref starterclient.TaskAttempt, dir string,
	cred userfiles.UserCredential) *Attempt {
	a := m.newAttempt((&wire.AttemptRef{Job: ref.Job, Index: ref.Index, Attempt: ref.Number}).AttemptID(schedd), cred,
		nil)
	close(a.launchDone)
	a.outputMessages.filesReady, a.checkpoint.mayBeStaged = true, true
	r, err := readAttempt(dir)
	if err == nil && r.Job == ref.Job && r.Index == ref.Index && r.Attempt == ref.Number {
		a.record, a.name = r, r.Name
		a.publishSecrets()
	} else {
		a.record.Notice = defaultNotice
	}
	return a
}

// defaultNotice is for an attempt of which the notice period is not known any more.
const defaultNotice = 10 * time.Second
