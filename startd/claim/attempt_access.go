package claim

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starterclient"
)

// What others than the runner ask of an attempt. Nothing of it changes once the attempt
// is there for them, but for what is behind a channel that is closed when it is final.

// ID returns the attempt's id.
func (a *Attempt) ID() roost.AttemptID { return a.id }

// JobName returns the name of the attempt's job.
func (a *Attempt) JobName() string { return a.name }

// Credential returns the user that the attempt runs as.
func (a *Attempt) Credential() userfiles.UserCredential { return a.cred }

// Ended returns a channel that is closed when the attempt has ended.
func (a *Attempt) Ended() <-chan struct{} { return a.ended }

// FilesClosed returns a channel that is closed when the attempt's files are to be
// removed.
func (a *Attempt) FilesClosed() <-chan struct{} { return a.ctx.Done() }

// HasEnded reports whether nothing more will be written.
func (a *Attempt) HasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// Launched returns a channel that is closed when the starter was told to run the attempt,
// or will never be.
func (a *Attempt) Launched() <-chan struct{} { return a.launchDone }

// AwaitsInput reports whether the attempt waits for its input.
func (a *Attempt) AwaitsInput() bool {
	select {
	case <-a.launchDone:
		return false
	default:
		return true
	}
}

// MustAwaitInput reports whether the attempt has a place for its input, which is awaited
// before the start.
func (a *Attempt) MustAwaitInput() bool { return a.mustAwaitInput && a.AwaitsInput() }

// Owner returns the user at the submit node whose job it is. It is known until the
// attempt is launched.
func (a *Attempt) Owner() string { return a.program.GetUser() }

// AwaitsScript reports whether the attempt waits for the text of its program.
func (a *Attempt) AwaitsScript() bool { return a.AwaitsInput() && a.program.GetScriptFollows() }

// AwaitsImage reports whether the attempt waits for the image from which it is to be
// restored.
func (a *Attempt) AwaitsImage() bool { return a.AwaitsInput() && a.restoresImage() }

// ImageSize returns the bytes of the image from which the attempt is to be restored.
func (a *Attempt) ImageSize() int64 { return a.program.GetRestore().GetSize() }

// Number returns the attempt's number as its starter knows it.
func (a *Attempt) Number() uint32 { return a.record.Attempt }

// ScratchDir returns the attempt's scratch directory; empty: it has none.
func (a *Attempt) ScratchDir() string { return a.record.Scratch }

// IODir returns the directory of captured streams and of the script, which is ours.
func (a *Attempt) IODir() string { return a.record.IO }

// ScriptPath returns where the text of the attempt's program is.
func (a *Attempt) ScriptPath() string {
	if a.record.Slurm != "" {
		return filepath.Join(a.record.IO, slurmScript)
	}
	return filepath.Join(a.record.IO, scriptName)
}

// Stream returns where the attempt writes standard output or standard error. It is the
// path of a file of the user's, or of a file of ours if the stream is captured. It is
// known when the attempt has been launched.
func (a *Attempt) Stream(stderr bool) (path string, captured bool) {
	r := &a.record
	if r.Join {
		stderr = false
	}
	path = r.Stdout
	if stderr {
		path = r.Stderr
	}
	if path == "" {
		return starterclient.CapturedPath(r.IO, stderr), true
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Cwd, path)
	}
	return path, false
}

// CapturedSize returns how much captured output of a stream an attempt that has ended was
// reported to have.
func (a *Attempt) CapturedSize(stderr bool) int64 {
	if stderr {
		return a.recordedExit.GetStderrSize()
	}
	return a.recordedExit.GetStdoutSize()
}

// Outputs returns the files that may be fetched of an attempt that has ended.
func (a *Attempt) Outputs() []userfiles.TransferEntry { return a.outputs }

// Agent returns the agent with the rights of the attempt's user; nil while none was
// needed.
func (a *Attempt) Agent() *userfiles.Agent { return a.agent }

// InputFilter returns what a schedd may send for the attempt. That is what its program
// names, as much as the schedd has said now, and no more than the disk that it may use.
func (a *Attempt) InputFilter(totals *wire.TransferTotals) *userfiles.TransferManifest {
	m := &userfiles.TransferManifest{Totals: totals, Bytes: int64(a.disk)}
	if len(a.inputPatterns) > 0 { // a schedd of the last version says nothing of them
		m.IsAsked = userfiles.AskedFilter(a.inputPatterns)
	}
	return m
}

// AcquireFiles has the attempt's files stay until ReleaseFiles. The error says that they
// are gone.
func (a *Attempt) AcquireFiles() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fmt.Errorf("attempt %v: %w: its files are gone", a.id, roost.Finished)
	}
	a.users.Add(1)
	return nil
}

// ReleaseFiles ends what AcquireFiles began.
func (a *Attempt) ReleaseFiles() { a.users.Done() }

// closeFiles waits until nobody uses the files any more, and lets nobody in again.
func (a *Attempt) closeFiles() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.users.Wait()
}

// FilesContext returns a context that also ends when the attempt's files are to go.
func (a *Attempt) FilesContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(a.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// AcquireShell counts a shell that is opened in the attempt, and reports whether there
// are no more than most. Shells that the attempt's own job wants count by themselves.
// ReleaseShell follows if it returns true.
func (a *Attempt) AcquireShell(ofJob bool, most int32) bool {
	if a.shells(ofJob).Add(1) > most {
		a.shells(ofJob).Add(-1)
		return false
	}
	return true
}

// ReleaseShell ends what AcquireShell began.
func (a *Attempt) ReleaseShell(ofJob bool) { a.shells(ofJob).Add(-1) }

func (a *Attempt) shells(ofJob bool) *atomic.Int32 {
	if ofJob {
		return &a.spawnSlots
	}
	return &a.shellSlots
}
