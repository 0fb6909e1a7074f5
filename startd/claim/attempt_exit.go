package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// maxInlineOutput is how much of each captured stream comes along with the news of an
// exit.
const maxInlineOutput = 64 << 10

// outputListTimeout bounds how long it may take to find an attempt's output files.
const outputListTimeout = time.Minute

// onExit takes in that the attempt has ended, and with what. The machine's epilogue comes
// before that is told.
func (h *Runner) onExit(a *Attempt, status *wire.ExitStatus) {
	if a.recordedExit != nil {
		return // told again after a reconnection
	}
	var windows []*wire.UsageWindow
	h.baseline, windows = h.machine.meters.Finish(h.id, a.id, status)
	if status.Reason == "" && (status.Code != 0 || status.Signal != 0) {
		status.Reason = h.machine.gpus.FailureReason(h.id)
	}
	h.checkpointer().stopCheckpoints(a)
	h.service().stopChecks(a)
	h.writeKillMessage(a, status)
	h.writeSlurmKillMessage(a, status)
	a.recordedExit = &wire.Exited{Attempt: wire.FromAttempt(a.id), Status: status, Unkept: a.checkpoint.unstored,
		Windows: windows}
	if h.siteScripts().startEpilogue(a) {
		h.baseline = nil // it uses the claim's group
	} else {
		h.reportExit(a)
	}
}

// reportExit tells the loop of the end.
func (h *Runner) reportExit(a *Attempt) {
	e, status := a.recordedExit, a.recordedExit.Status
	if a.record.Stdout == "" {
		e.StdoutStart = h.retainOutput(a, false)
		e.Stdout, e.StdoutSize = readInlineOutput(a.EndedOutput(false))
	}
	if a.record.Stderr == "" && !a.record.Join {
		e.StderrStart = h.retainOutput(a, true)
		e.Stderr, e.StderrSize = readInlineOutput(a.EndedOutput(true))
	}
	h.truncateOutput(a, e)
	e.StdoutTimes = h.outputTimes(a, false, e.GetStdoutStart()+e.GetStdoutSize())
	e.StderrTimes = h.outputTimes(a, true, e.GetStderrStart()+e.GetStderrSize())
	if a.record.Scratch != "" && status.GetCause() != wire.Cause_CAUSE_MACHINE {
		h.listOutputs(a, e)
	}
	status.Reason = PrintableReason(status.Reason)
	if a.AwaitsInput() {
		close(a.launchDone)
	}
	close(a.ended)
	h.machine.host.Post(EndedEvent{h.id, a.id, e})
}

// truncateOutput cuts captured output where it is more than a task may have. So no more
// than that comes to a submit node.
func (h *Runner) truncateOutput(a *Attempt, e *wire.Exited) {
	limit := int64(h.machine.outputLimit)
	for _, s := range []struct {
		size   *int64
		stderr bool
	}{{&e.StdoutSize, false}, {&e.StderrSize, true}} {
		if *s.size <= limit {
			continue
		}
		if err := os.Truncate(a.EndedOutput(s.stderr), limit); err != nil {
			h.machine.log.Warn("captured output cannot be cut", "attempt", a.Label(), "err", err)
		}
		if e.Status.Cause == wire.Cause_CAUSE_EXITED {
			e.Status.Cause, e.Status.Reason = wire.Cause_CAUSE_DISK,
				meter.OutputLimitReason(roost.Bytes(*s.size), roost.Bytes(limit))
		}
		*s.size = limit
	}
}

// readInlineOutput reads a stream that is small enough to come along.
func readInlineOutput(path string) (data []byte, size int64) {
	info, err := os.Lstat(path)
	if err != nil || info.Size() == 0 {
		return nil, 0
	}
	if info.Size() <= maxInlineOutput {
		if data, err = os.ReadFile(path); err == nil {
			return data, int64(len(data))
		}
	}
	return nil, info.Size()
}

// listOutputs finds what the attempt wrote in its scratch directory and the submit side
// wants.
func (h *Runner) listOutputs(a *Attempt, e *wire.Exited) {
	ctx, cancel := context.WithTimeout(a.ctx, outputListTimeout)
	defer cancel()
	agent, err := h.dirs.userAgent()
	if err == nil {
		a.agent = agent
		a.outputs, err = listOutputFiles(ctx, agent, &a.record)
	}
	if errors.Is(err, roost.Exhausted) {
		a.outputs = nil
		e.Status.Cause, e.Status.Reason = wire.Cause_CAUSE_DISK, "it left more files than can be brought back: "+
			err.Error()+"; put them into one, or name fewer in outputs"
		return
	}
	if err != nil {
		h.machine.log.Info("outputs are missing", "attempt", a.Label(), "err", err)
		if e.Status.Reason == "" {
			e.Status.Reason = "output: " + err.Error()
		}
	}
	for _, o := range a.outputs {
		e.Outputs = append(e.Outputs, userfiles.WireEntry(o))
	}
}

// outputFileLimit is how many files an attempt brings back. Their names travel in the
// news of its end, and in the question for them.
func outputFileLimit() userfiles.ListLimit {
	return userfiles.ListLimit{Entries: 100_000, Names: 3 * int(roost.MiB)}
}

// maxReason is how many bytes an attempt's end may be explained in.
const maxReason = 4 << 10

// PrintableReason returns an explanation that can be sent: short, and in UTF-8. What
// users choose is in it, such as the names of their processes and files.
func PrintableReason(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + " …"
}

// listOutputFiles lists the files that the record's patterns name. Without patterns it
// lists top-level files that are new or changed, and not hidden. A missing file does not
// keep the others from being listed. What the submit side would take for something else
// than was asked for is left out, as patterns may lead anywhere.
func listOutputFiles(ctx context.Context, agent *userfiles.Agent,
	r *attemptRecord) (all []userfiles.TransferEntry, err error) {
	asked := userfiles.AskedFilter(r.Outputs)
	defer func() {
		all = slices.DeleteFunc(all, func(e userfiles.TransferEntry) bool {
			return len(r.Outputs) > 0 && !asked(&wire.FileEntry{Name: e.Name, Dir: e.Dir})
		})
	}()
	if len(r.Outputs) > 0 {
		all, err = agent.ExpandWithin(ctx, r.Scratch, r.Outputs, outputFileLimit())
		if err == nil || errors.Is(err, roost.Exhausted) {
			return all, err
		}
		return listOutputsByPattern(ctx, agent, r)
	}
	return agent.SnapshotWithin(ctx, r.Scratch, outputFileLimit(), func(e userfiles.TransferEntry) bool {
		old, known := r.Before[e.Name]
		return !e.Dir && !userfiles.IsHidden(e.Name) && (!known || old != fileAge{e.Size, e.Modified.UnixNano()})
	})
}

// listOutputsByPattern lists what one pattern after the other names.
func listOutputsByPattern(ctx context.Context, agent *userfiles.Agent,
	r *attemptRecord) (all []userfiles.TransferEntry, missing error) {
	bound, explained := outputFileLimit(), 0
	seen := make(map[string]bool)
	for _, pattern := range r.Outputs {
		some, err := agent.ExpandWithin(ctx, r.Scratch, []string{pattern}, bound)
		if errors.Is(err, roost.Exhausted) || ctx.Err() != nil {
			return all, err
		}
		if err != nil && explained < maxReason {
			missing = errors.Join(missing, err)
			explained += len(err.Error())
		}
		for _, e := range some {
			if seen[e.Name] {
				continue
			}
			if bound.Entries, bound.Names = bound.Entries-1, bound.Names-len(e.Name); bound.Entries < 0 ||
				bound.Names < 0 {
				return nil, fmt.Errorf("%w: more than %d files, or names of more than %v", roost.Exhausted,
					outputFileLimit().Entries, roost.Bytes(outputFileLimit().Names))
			}
			seen[e.Name] = true
			all = append(all, e)
		}
	}
	return all, missing
}

// exitReport is a starter's news in the words of the wire.
func (a *Attempt) exitReport(x starterclient.TaskExit) *wire.ExitStatus {
	s := &wire.ExitStatus{
		Code: x.Code, Signal: x.Signal, Core: x.Core, Reason: x.Reason, Cause: wire.Cause(x.Cause),
		Wall: x.Wall, UserCpu: x.UserCPU, SystemCpu: x.SystemCPU, MaxRss: x.MaxRSS,
	}
	if s.Reason == "" && x.Step != proto.StepNone {
		s.Reason = a.launchError(x)
	}
	s.OwnFiles = s.Cause == wire.Cause_CAUSE_MACHINE && mayBeJobFault(x)
	return s
}

// mayBeJobFault reports whether the job may be at fault for an error that looks like the
// machine's. It was met on files that the job names, which its user may have open for
// writing, or on a server that is away; or on the limit of its user's processes. Another
// try elsewhere is worth it, and shows which it was.
func mayBeJobFault(x starterclient.TaskExit) bool {
	switch x.Step {
	case proto.EnterCwd, proto.OpenStdin, proto.OpenStdout, proto.OpenStderr, proto.FindProgram, proto.ExecProgram,
		proto.MountDir:
		switch syscall.Errno(x.Errno) {
		case syscall.ENOMEM, syscall.ENFILE, syscall.EMFILE:
			return false
		}
		return true
	case proto.Fork:
		return syscall.Errno(x.Errno) == syscall.EAGAIN
	}
	return false
}

// launchError says why an attempt could not be started.
func (a *Attempt) launchError(x starterclient.TaskExit) string {
	cause := syscall.Errno(x.Errno).Error()
	at := func(verb, path string) string {
		if path == "" {
			return verb + ": " + cause
		}
		if verb == "exec" || filepath.IsAbs(path) {
			return fmt.Sprintf("%s %s: %s", verb, path, cause)
		}
		return fmt.Sprintf("%s %s: %s", verb, filepath.Join(a.record.Cwd, path), cause)
	}
	executable := a.program.GetExecutable()
	switch x.Step {
	case proto.EnterCwd:
		return at("enter", a.record.Cwd)
	case proto.OpenStdin:
		return at("open", a.program.GetStdin())
	case proto.OpenStdout:
		return at("open", a.record.Stdout)
	case proto.OpenStderr:
		return at("open", a.record.Stderr)
	case proto.FindProgram:
		return fmt.Sprintf("exec %s: no such program (%s)", executable, cause)
	case proto.ExecProgram:
		return at("exec", executable)
	case proto.Credentials, proto.VerifyRights:
		return "the user's rights could not be taken on: " + cause
	case proto.Fork:
		return "fork: " + cause
	case proto.MakeSandbox:
		return "its box could not be made: " + cause
	case proto.BindPort:
		return "a port of the claim could not be bound: " + cause
	case proto.MountDir:
		return "a directory that its container was to have could not be mounted: " + cause
	case proto.FromImage:
		return "its checkpoint could not be restored: " + cause
	}
	return "the starter could not begin: " + cause
}
