package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// The spool keeps what tasks wrote to the standard streams that their jobs did not send
// anywhere else: one file an attempt and stream, below a directory for each job. Only the
// schedd can reach it.

// logPoll is how often a file that grows is looked at while somebody follows it.
const logPoll = 100 * time.Millisecond

// Logs sends what a task wrote. While the task runs the node is asked; afterwards, the
// spool or the file where the job wanted its output.
func (s *Service) Logs(req *wire.LogsRequest, stream grpc.ServerStreamingServer[wire.LogChunk]) error {
	who, err := s.callerOf(stream.Context())
	if err != nil {
		return err
	}
	if req.Id, err = resolveJobWord(stream.Context(), s, who, req.GetId()); err != nil {
		return err
	}
	if err := checkLogTimes(req, time.Now()); err != nil {
		return err
	}
	if host, there := s.peerSchedds.RemoteHost(req.GetId()); there &&
		(host == s.node.CellQueueName() || s.admins.IsAdmin(who.User, s.node.Name)) {
		return s.peerSchedds.PeerLogs(stream.Context(), host, &wire.NeighbourLogs{User: who.User, Uid: who.UID,
			Gid: who.GID, Request: req}, stream.Send)
	}
	return SendLogs(stream.Context(), s, req, who, stream.Send)
}

// checkLogTimes refuses times that select nothing.
func checkLogTimes(req *wire.LogsRequest, now time.Time) error {
	since, until := req.GetSinceMs(), req.GetUntilMs()
	text := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
	switch {
	case since < 0 || until < 0:
		return fmt.Errorf("output of %s: %w: a time before 1970; name one at which the task ran", req.GetId(),
			roost.Invalid)
	case since > now.UnixMilli():
		return fmt.Errorf("output of %s: %w: %s is in the future here, where it is %s; name a time that has passed",
			req.GetId(), roost.Invalid, text(since), text(now.UnixMilli()))
	case until > 0 && until < since:
		return fmt.Errorf("output of %s: %w: it is to end at %s and begin at %s, which is later; exchange them",
			req.GetId(), roost.Invalid, text(until), text(since))
	}
	return nil
}

// SendLogs is Logs for a user whom this schedd or another one knows.
func SendLogs(ctx context.Context, s *Service, req *wire.LogsRequest, who queue.CallerIdentity,
	to func(*wire.LogChunk) error) error {
	reader := &logReader{Service: s, req: req, user: who, to: to, offset: req.GetOffset()}
	var w *jobWatch
	for {
		more, err := reader.sendStep(ctx)
		if err != nil || !more {
			return err
		}
		if w == nil { // from the second step on: something may have changed since the first
			if err := s.loop.CallLoop(ctx, func(time.Time) {
				w = s.startWatch([]roost.JobID{reader.task.Job})
			}); err != nil {
				return err
			}
			defer s.loop.PostCall(context.WithoutCancel(ctx), func(time.Time) { s.stopWatch(w) })
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.daemonContext.Done():
			return s.loop.StoppingError(ctx)
		case <-w.signal:
		case <-time.After(logPoll):
		}
	}
}

// send passes a piece of a stream on.
func (r *logReader) send(data []byte) error { return r.sendWritten(data, r.offset, 0) }

// sendWritten passes a piece of a stream on, with its offset and when it was written. 0:
// that is not known.
func (r *logReader) sendWritten(data []byte, at, written int64) error {
	if len(data) == 0 {
		return nil
	}
	r.offset = at + int64(len(data))
	return r.to(&wire.LogChunk{Data: data, Stderr: r.req.GetStderr(), Attempt: uint32(r.attempt), Offset: at,
		WrittenMs: written, Stored: r.stored})
}

// copyFile sends what is wanted of a file beyond the offset.
func (r *logReader) copyFile(f *os.File, wanted outputfile.TimeSelection) error {
	r.offset = max(r.offset, wanted.Start)
	if start, err := outputfile.DataStart(f); err == nil {
		r.offset = max(r.offset, start)
	}
	if tail := r.req.GetTail(); tail > 0 && !r.begun {
		if end, err := f.Seek(0, io.SeekEnd); err == nil {
			r.offset = max(min(end, wanted.End)-tail, r.offset)
		}
	}
	r.begun = true
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		if serr := wanted.Send(wanted.Cut(buf[:n], r.offset), r.offset, r.sendWritten); serr != nil {
			return serr
		}
		if err == io.EOF || r.offset >= wanted.End {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// sendSpooled sends what the spool holds.
func (r *logReader) sendSpooled(a roost.AttemptID, stderr bool) error {
	f, err := os.Open(r.transfers.SpoolFiles.Path(a, stderr))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it wrote nothing
	}
	if err != nil {
		return err
	}
	defer f.Close()
	wanted, err := r.spooledSelection(a, stderr)
	if err != nil {
		return err
	}
	return r.copyFile(f, wanted)
}

// spooledSelection is the part that is wanted of a stream in the spool.
func (r *logReader) spooledSelection(a roost.AttemptID, stderr bool) (outputfile.TimeSelection, error) {
	if !outputfile.SelectsByTime(r.req) && !r.req.GetTimes() {
		return outputfile.SelectAll(), nil
	}
	marks, err := r.transfers.SpoolFiles.Times(a, stderr)
	switch {
	case err != nil || marks != nil:
		return marks.Select(r.req), err
	case outputfile.SelectsByTime(r.req):
		return outputfile.SelectAll(), fmt.Errorf("output of attempt %v: %w: %s has no times of it: the machine had "+
			"an older version, or the output came from a checkpoint server; ask without a time", a, roost.Conflict,
			r.node.Name)
	}
	return outputfile.SelectAll(), nil
}

// followLive follows the stream on the node, until the attempt ends or the node goes
// away.
func (r *logReader) followLive(ctx context.Context, p *transfer.StartdNode, a roost.AttemptID) error {
	request := &wire.TailRequest{
		Schedd: r.node.Name, Attempt: codec.AttemptRef(a), Stderr: r.req.GetStderr(), Offset: r.offset,
		Follow: r.req.GetFollow(), SinceMs: r.req.GetSinceMs(), UntilMs: r.req.GetUntilMs(), Times: r.req.GetTimes(),
	}
	if !r.begun {
		request.Tail = r.req.GetTail()
	}
	tail, err := p.Client.Tail(ctx, request)
	for err == nil {
		var chunk *wire.LogChunk
		if chunk, err = tail.Recv(); err == nil {
			if chunk.GetWrittenMs() == 0 && outputfile.SelectsByTime(r.req) {
				return fmt.Errorf("output of attempt %v: %w: its machine %s has an older version, which has no times "+
					"of output; ask without a time", a, roost.Conflict, p.Name)
			}
			r.begun = true
			err = r.sendWritten(chunk.GetData(), max(r.offset, chunk.GetOffset()), chunk.GetWrittenMs())
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(rpc.FromStatus(err), roost.Unavailable) ||
		errors.Is(rpc.FromStatus(err), roost.NotFound) {
		return nil
	}
	return err
}

// logReader sends one stream of one task, a step at a time.
type logReader struct {
	*Service
	req     *wire.LogsRequest
	user    queue.CallerIdentity
	to      func(*wire.LogChunk) error
	task    roost.TaskID
	attempt roost.AttemptNumber
	offset  int64
	begun   bool
	earlier bool   // it is not the last attempt
	stored  string // SHA-256 of the set of files that is sent; "": it is a stream
}

// locateStream finds where the stream is now.
func (r *logReader) locateStream(ctx context.Context) (o queue.TaskOutput, p *transfer.StartdNode, scratch bool,
	err error) {
	aerr := r.loop.CallLoop(ctx, func(time.Time) {
		if r.task, err = r.taskID(r.req.GetId(), r.user); err != nil {
			return
		}
		if o, err = r.queue.TaskOutput(r.task); err == nil {
			p = r.loop.Node(o.Node)
			if program, lerr := r.queue.Program(o.Attempt); lerr == nil {
				scratch = r.transfers.UsesScratch(program, o.Node)
			}
		}
	})
	if aerr != nil {
		return o, nil, false, aerr
	}
	if errors.Is(err, roost.NotFound) {
		if past, _, herr := r.history.Job(r.task.Job.Seq); herr == nil {
			o, err = past.TaskOutput(r.task)
			scratch = true // where it was does not matter any more: a file that was named is at its place
		}
	}
	if err == nil {
		err = r.user.CheckOwner(r.task, o.Owner, o.UID)
	}
	return o, p, scratch, err
}

// sendStep sends what there is, and reports whether there may be more to come.
func (r *logReader) sendStep(ctx context.Context) (more bool, err error) {
	o, p, scratch, err := r.locateStream(ctx)
	if err != nil {
		return false, err
	}
	if err := r.chooseAttempt(&o); err != nil {
		return false, err
	}
	if r.req.GetFiles() {
		return false, r.sendStoredFiles(ctx, o)
	}
	stderr := r.req.GetStderr() && !o.Join
	path := o.Out
	if stderr {
		path = o.Err
	}
	switch {
	case r.earlier:
		return false, r.sendEarlier(o.Attempt, stderr, path)
	case o.Attempt.Attempt == 0: // it has not been started yet
	case o.Running && p != nil && (path == "" || scratch) && o.State != roost.Exiting:
		err = r.followLive(ctx, p, o.Attempt)
	case o.IsStored:
		err = r.sendStoredStream(ctx, o, stderr)
	case path != "" && !r.isSpooled(o.Attempt, stderr):
		err = r.sendOutputFile(ctx, o, transfer.AbsolutePath(o.Iwd, path))
	default:
		err = r.sendSpooled(o.Attempt, stderr)
	}
	return r.req.GetFollow() && !o.State.IsFinal() && o.State != roost.Held, err
}

// chooseAttempt puts the attempt in o whose output is wanted. A reader that has named one
// stays with it; others go on with the next one.
func (r *logReader) chooseAttempt(o *queue.TaskOutput) error {
	last, wanted := o.Attempt.Attempt, roost.AttemptNumber(r.req.GetAttempt())
	if r.req.GetPrevious() {
		if r.attempt == 0 && last < 2 {
			return fmt.Errorf("task %v: %w: it has no attempt before the last one, which is %d", r.task, roost.NotFound,
				last)
		}
		wanted = last - 1
		if r.attempt != 0 {
			wanted = r.attempt
		}
	}
	if wanted > last {
		return fmt.Errorf("task %v: %w: it has no attempt %d; the last one is %d", r.task, roost.NotFound, wanted, last)
	}
	if wanted != 0 {
		r.earlier, r.attempt, o.Attempt.Attempt = wanted < last, wanted, wanted
		return nil
	}
	if last != r.attempt {
		if r.attempt != 0 {
			r.offset = 0 // it was started again, and writes anew
		}
		r.attempt = last
	}
	return nil
}

// sendEarlier sends the output of an attempt that is not the last one. The spool alone
// has such output.
func (r *logReader) sendEarlier(a roost.AttemptID, stderr bool, path string) error {
	switch {
	case r.isSpooled(a, stderr):
		return r.sendSpooled(a, stderr)
	case path != "":
		return fmt.Errorf("attempt %v: %w: its output went to %s, where the next attempt writes too", a, roost.NotFound,
			path)
	}
	return fmt.Errorf("attempt %v: %w: it wrote nothing, or what it wrote is not kept any more (logs.keep of the job)",
		a, roost.NotFound)
}

// sendOutputFile sends what the file holds that the job named, read with the owner's
// rights.
func (r *logReader) sendOutputFile(ctx context.Context, o queue.TaskOutput, path string) error {
	agent, err := r.users.Agent(o.UID, o.GID)
	if err != nil {
		return err
	}
	if outputfile.SelectsByTime(r.req) {
		return outputfile.UnknownTimesError(path)
	}
	if tail := r.req.GetTail(); tail > 0 && !r.begun {
		if e, err := agent.Stat(ctx, filepath.Dir(path), filepath.Base(path)); err == nil {
			r.offset = max(e.Size-tail, 0)
		}
	}
	r.begun = true
	for {
		data, _, err := agent.ReadAt(ctx, filepath.Dir(path), filepath.Base(path), r.offset)
		if errors.Is(err, roost.NoInput) && r.req.GetFollow() {
			return nil // it may come
		}
		if err != nil || len(data) == 0 {
			return err
		}
		if err := r.send(data); err != nil {
			return err
		}
	}
}

// isSpooled reports whether a stream of an attempt that was to go into a file is in the
// spool.
func (r *logReader) isSpooled(a roost.AttemptID, stderr bool) bool {
	info, err := os.Lstat(r.transfers.SpoolFiles.Path(a, stderr))
	return err == nil && info.Mode().IsRegular()
}

// sendStoredStream sends a stream that is on the checkpoint server. The host that fetched
// it from its node has it in the spool too.
func (r *logReader) sendStoredStream(ctx context.Context, o queue.TaskOutput, stderr bool) error {
	name := o.Stored.Out
	if stderr {
		name = o.Stored.Err
	}
	if name != "" && !r.isSpooled(o.Attempt, stderr) {
		if err := transfer.RestoreSpool(ctx, r.transfers, o.Attempt, stderr, storedFile(o, name)); err != nil {
			return err
		}
	}
	return r.sendSpooled(o.Attempt, stderr)
}

// sendStoredFiles sends the output files that are on the checkpoint server, as they are
// there.
func (r *logReader) sendStoredFiles(ctx context.Context, o queue.TaskOutput) error {
	switch {
	case !o.IsStored:
		return fmt.Errorf("task %v: %w: its output is not stored: it is in %s on %s, or what roost logs shows", r.task,
			roost.NotFound, o.Iwd, r.node.Name)
	case !o.State.IsFinal():
		return fmt.Errorf("task %v: %w: it has not ended", r.task, roost.NotFound)
	case o.Stored.Files == "":
		return nil
	}
	r.stored = o.Stored.Files
	return r.transfers.ReadStoredFile(ctx, storedFile(o, r.stored), max(r.offset, 0), func(from io.Reader) error {
		for buf := make([]byte, 64<<10); ; {
			n, err := io.ReadFull(from, buf)
			if serr := r.send(buf[:n]); serr != nil {
				return serr
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

// storedFile names a file of a task's output.
func storedFile(o queue.TaskOutput, name string) queue.UserScript {
	return queue.UserScript{Node: o.StoredNode, UID: o.UID, Name: name}
}
