package claim

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

// maxPackSlots is how many images are compressed at once.
const maxPackSlots = 2

// checkpointCheckTimeout bounds how long a start waits for the self-test of CRIU.
const checkpointCheckTimeout = 30 * time.Second

// Checkpoints takes checkpoints of the attempts of a machine, and has their images.
type Checkpoints struct {
	log       *slog.Logger
	dir       string               // of images, and of what is being made
	server    string               // address of the checkpoint server; empty: there is none
	identity  *rpc.Identity        // of this startd, for the server
	mtbf      func() time.Duration // mean time between failures of this machine
	program   string               // path of this program, for starters
	criu      criu.CheckResult     // what CRIU can do here
	images    *store.Store         // that were taken here, or are to be restored
	packSlots chan struct{}        // one for each image that is compressed
	vacating  atomic.Int32         // attempts that are saved on their way out
}

// CheckpointOptions are what the checkpoints of a machine are taken with.
type CheckpointOptions struct {
	Log      *slog.Logger
	Dir      string               // of images, which is there
	Server   string               // address of a checkpoint server; empty: there is none
	Identity *rpc.Identity        // of this startd
	MTBF     func() time.Duration // mean time between failures of this machine
}

// OpenCheckpoints opens the images of a machine. No process is dumped before FindCRIU has
// found that this works.
func OpenCheckpoints(o CheckpointOptions) (*Checkpoints, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	images, err := store.Open(filepath.Join(o.Dir, "images"), 0)
	if err != nil {
		return nil, err
	}
	return &Checkpoints{log: o.Log, dir: o.Dir, server: o.Server, identity: o.Identity, mtbf: o.MTBF, program: program,
		images: images, packSlots: make(chan struct{}, maxPackSlots)}, nil
}

// FindCRIU finds out whether processes can be dumped on this machine, and says so in its
// ad. The node file may name the CRIU that does it.
func (m *Checkpoints) FindCRIU(named string, sandboxed bool, ad *classad.Ad) {
	path, err := criu.Find(named)
	switch {
	case !sandboxed:
		m.criu.Why = "tasks do not run in sandboxes"
	case err != nil:
		m.criu.Why = err.Error()
	default:
		ctx, stop := context.WithTimeout(context.Background(), checkpointCheckTimeout)
		defer stop()
		m.criu = criu.Check(ctx, userfiles.SelfExecutable, path, m.dir, criu.MachineCache)
	}
	if !m.criu.Works {
		m.log.Warn("no checkpoints of processes are taken", "why", m.criu.Why)
	}
	ad.SetBool(roost.AttrHasCheckpoint, m.criu.Works)
	ad.SetBool(roost.AttrHasSandbox, sandboxed)
	ad.SetBool(roost.AttrHasSecrets, sandboxed) // they are mounted there
	ad.SetBool(roost.AttrHasPMI, true)
	if m.criu.Works {
		ad.SetString(roost.AttrCheckpointBy, "CRIU "+m.criu.Version)
	}
}

// Sweep removes images of which no attempt has told, and what an earlier start was
// making when it ended.
func (m *Checkpoints) Sweep(adopted []*Adopted) {
	wanted := map[store.ImageKey]bool{}
	for _, f := range adopted {
		if f == nil || f.Runner.attempt == nil || f.Runner.attempt.checkpoint.unstored == nil {
			continue
		}
		a, i := f.Runner.attempt, f.Runner.attempt.checkpoint.unstored.GetImage()
		wanted[store.ImageKey{
			Schedd: f.Runner.file.Schedd, Job: a.ref.Job, Index: int(a.ref.Index),
			Attempt: roost.AttemptNumber(i.GetAttempt()), Sequence: i.GetSequence(),
		}] = true
	}
	if _, err := m.images.Sweep(func(k store.ImageKey) bool { return wanted[k] }); err != nil {
		m.log.Warn("cannot clean up", "err", err)
	}
	for _, pattern := range []string{"*.dump", "*.restore", "*.root", "*.spec", "*.answer", "*.pid"} {
		paths, _ := filepath.Glob(filepath.Join(m.dir, pattern))
		for _, path := range paths {
			os.RemoveAll(path)
		}
	}
}

// ReceiveImage takes the image from which an attempt is to be restored, as it comes.
func (m *Checkpoints) ReceiveImage(schedd string, a *Attempt, recv func() (*wire.FileChunk, error)) error {
	i := a.program.GetRestore()
	return m.images.Receive(imageKey(schedd, a, i), i.GetSize(), recv)
}

// SendImage sends an image of an attempt that was taken here.
func (m *Checkpoints) SendImage(schedd string, a *Attempt, sequence uint64, send func(*wire.FileChunk) error) error {
	return m.images.Send(store.ImageKey{
		Schedd: schedd, Job: a.ref.Job, Index: int(a.ref.Index), Attempt: a.id.Attempt, Sequence: sequence,
	}, send)
}
