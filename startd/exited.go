package startd

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
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// inlineOutput is how much of each captured stream comes along with the news of an exit.
const inlineOutput = 64 << 10

// listing bounds how long it may take to find an attempt's output files.
const listing = time.Minute

// exit takes in that the attempt has ended, and with what. The machine's epilogue comes before that is told.
func (h *hand) exit(a *attempt, status *wire.ExitStatus) {
	if a.exited != nil {
		return // told again after a reconnection
	}
	h.account(a, status)
	if status.Reason == "" && (status.Code != 0 || status.Signal != 0) {
		status.Reason = h.m.gpus.blame(h.id)
	}
	h.stopSaving(a)
	h.tellKilled(a, status)
	a.exited = &wire.Exited{Attempt: reference(a.id), Status: status, Unkept: a.saving.unkept}
	if !h.epilogue(a) {
		h.conclude(a)
	}
}

// conclude tells the loop of the end.
func (h *hand) conclude(a *attempt) {
	e, status := a.exited, a.exited.Status
	if a.record.Stdout == "" {
		e.Stdout, e.StdoutSize = captured(starter.CapturedPath(a.record.IO, false))
	}
	if a.record.Stderr == "" && !a.record.Join {
		e.Stderr, e.StderrSize = captured(starter.CapturedPath(a.record.IO, true))
	}
	h.boundOutput(a, e)
	if a.record.Scratch != "" && status.GetCause() != wire.Cause_CAUSE_MACHINE {
		h.listOutputs(a, e)
	}
	status.Reason = plainReason(status.Reason)
	if a.waits() {
		close(a.launched)
	}
	close(a.over)
	h.m.post(ended{h.id, a.id, e})
}

// boundOutput cuts what was captured where it is more than a task may have, so that no more than that comes to a submit node.
func (h *hand) boundOutput(a *attempt, e *wire.Exited) {
	limit := int64(h.m.disks.output)
	for _, s := range []struct {
		size   *int64
		stderr bool
	}{{&e.StdoutSize, false}, {&e.StderrSize, true}} {
		if *s.size <= limit {
			continue
		}
		if err := os.Truncate(starter.CapturedPath(a.record.IO, s.stderr), limit); err != nil {
			h.m.log.Warn("captured output cannot be cut", "attempt", a.label(), "err", err)
		}
		if e.Status.Cause == wire.Cause_CAUSE_EXITED {
			e.Status.Cause, e.Status.Reason = wire.Cause_CAUSE_DISK, tooMuchOutput(roost.Bytes(*s.size), roost.Bytes(limit))
		}
		*s.size = limit
	}
}

// captured reads a stream that is small enough to come along.
func captured(path string) (data []byte, size int64) {
	info, err := os.Lstat(path)
	if err != nil || info.Size() == 0 {
		return nil, 0
	}
	if info.Size() <= inlineOutput {
		if data, err = os.ReadFile(path); err == nil {
			return data, int64(len(data))
		}
	}
	return nil, info.Size()
}

// listOutputs finds what the attempt wrote in its scratch directory and the submit side wants.
func (h *hand) listOutputs(a *attempt, e *wire.Exited) {
	ctx, cancel := context.WithTimeout(a.ctx, listing)
	defer cancel()
	agent, err := h.userAgent()
	if err == nil {
		a.agent = agent
		a.outputs, err = outputs(ctx, agent, &a.record)
	}
	if errors.Is(err, roost.Exhausted) {
		a.outputs = nil
		e.Status.Cause, e.Status.Reason = wire.Cause_CAUSE_DISK, "it left more files than can be brought back: "+err.Error()+"; put them into one, or name fewer in outputs"
		return
	}
	if err != nil {
		h.m.log.Info("outputs are missing", "attempt", a.label(), "err", err)
		if e.Status.Reason == "" {
			e.Status.Reason = "output: " + err.Error()
		}
	}
	for _, o := range a.outputs {
		e.Outputs = append(e.Outputs, files.WireEntry(o))
	}
}

// outputBound is how many files an attempt brings back. Their names travel in the news of its end, and in the question for them.
func outputBound() files.ListBound {
	return files.ListBound{Entries: 100_000, Names: 3 * int(roost.MiB)}
}

// maxReason is how many bytes an attempt's end may be explained in.
const maxReason = 4 << 10

// plainReason is an explanation that can be sent: short, and in UTF-8. What users choose is in it, such as the names of their processes and files.
func plainReason(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + " …"
}

// outputs lists what the record's patterns name, or without patterns the top-level files that are new or changed, and not hidden. A missing file does not
// keep the others from being listed. What the submit side would take for something else than was asked for is left out, as patterns may lead anywhere.
func outputs(ctx context.Context, agent *files.Agent, r *attemptRecord) (all []files.Entry, err error) {
	asked := files.Asked(r.Outputs)
	defer func() {
		all = slices.DeleteFunc(all, func(e files.Entry) bool {
			return len(r.Outputs) > 0 && !asked(&wire.FileEntry{Name: e.Name, Dir: e.Dir})
		})
	}()
	if len(r.Outputs) > 0 {
		all, err = agent.ExpandWithin(ctx, r.Scratch, r.Outputs, outputBound())
		if err == nil || errors.Is(err, roost.Exhausted) {
			return all, err
		}
		return outputsOfEach(ctx, agent, r)
	}
	return agent.SnapshotWithin(ctx, r.Scratch, outputBound(), func(e files.Entry) bool {
		old, known := r.Before[e.Name]
		return !e.Dir && !files.Hidden(e.Name) && (!known || old != fileAge{e.Size, e.Modified.UnixNano()})
	})
}

// outputsOfEach lists what one pattern after the other names.
func outputsOfEach(ctx context.Context, agent *files.Agent, r *attemptRecord) (all []files.Entry, missing error) {
	bound, explained := outputBound(), 0
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
			if bound.Entries, bound.Names = bound.Entries-1, bound.Names-len(e.Name); bound.Entries < 0 || bound.Names < 0 {
				return nil, fmt.Errorf("%w: more than %d files, or names of more than %v", roost.Exhausted, outputBound().Entries, roost.Bytes(outputBound().Names))
			}
			seen[e.Name] = true
			all = append(all, e)
		}
	}
	return all, missing
}

// status is a starter's news in the words of the wire.
func (a *attempt) status(x starter.Exit) *wire.ExitStatus {
	s := &wire.ExitStatus{
		Code: x.Code, Signal: x.Signal, Core: x.Core, Reason: x.Reason, Cause: wire.Cause(x.Cause),
		Wall: x.Wall, UserCpu: x.UserCPU, SystemCpu: x.SystemCPU, MaxRss: x.MaxRSS,
	}
	if s.Reason == "" && x.Step != proto.NoStep {
		s.Reason = a.launchFailure(x)
	}
	s.OwnFiles = s.Cause == wire.Cause_CAUSE_MACHINE && mayBeJobs(x)
	return s
}

// mayBeJobs reports whether the job may be at fault for an error that looks like the machine's: it was met on files that the job names, which its user may keep
// open for writing, or have on a server that is away; or on the bound on its user's processes. Another try elsewhere is worth it, and shows which it was.
func mayBeJobs(x starter.Exit) bool {
	switch x.Step {
	case proto.EnterCwd, proto.OpenStdin, proto.OpenStdout, proto.OpenStderr, proto.FindProgram, proto.ExecProgram:
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

// launchFailure says why an attempt could not be started.
func (a *attempt) launchFailure(x starter.Exit) string {
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
	case proto.MakeBox:
		return "its box could not be made: " + cause
	case proto.FromImage:
		return "its checkpoint could not be restored: " + cause
	}
	return "the starter could not begin: " + cause
}
