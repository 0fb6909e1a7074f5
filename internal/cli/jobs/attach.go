package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// AttachJob shows the output of a job until it has ended, and removes it when the user
// says so. If it is quiet, nothing but the job's own output is printed.
func AttachJob(c *frame.Invocation, id string, signals <-chan os.Signal, quiet bool) error {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	c.Context = ctx
	var streams sync.WaitGroup
	var failed [2]error
	for i, to := range []io.Writer{c.Stdout, c.Stderr} {
		streams.Go(func() {
			failed[i] = followOutput(c, &scheddapi.LogsRequest{Id: id, Stderr: i == 1, Follow: true},
				to)
		})
	}
	type outcome struct {
		tally *Progress
		err   error
	}
	ended := make(chan outcome, 1)
	unable := make(chan string, 1)
	go func() {
		t, err := WatchJobs(c, &scheddapi.Selection{Selectors: []string{id}},
			&runProgress{Invocation: c, began: c.Now(), startFailed: unable, quiet: quiet})
		ended <- outcome{t, err}
	}()
	asked := false
	for {
		select {
		case o := <-ended:
			if o.err != nil {
				return o.err
			}
			streams.Wait()
			return reportEnd(c, o.tally, asked, quiet, errors.Join(failed[:]...))
		case why := <-unable: // it is held; whoever waits here cannot mend it and release it
			fmt.Fprintf(c.Stderr, "roost: %s: %s\n", id, why)
			RemoveInterrupted(c, id)
			return frame.ExitError(127)
		case <-signals:
			if asked {
				fmt.Fprintf(c.Stderr, "\nroost: left; see how it ends with: roost show %s\n", id)
				return frame.ExitError(128 + 2)
			}
			asked = true
			fmt.Fprintf(c.Stderr, "\nroost: removing %s (Ctrl-C again leaves at once)\n", id)
			go RemoveInterrupted(c, id)
		}
	}
}

// RemoveInterrupted asks the schedd to remove the job of a run that was interrupted.
func RemoveInterrupted(c *frame.Invocation, id string) {
	results, err := changeJobs(c, &scheddapi.ActRequest{
		Verb: scheddapi.ActRequest_REMOVE, Selection: &scheddapi.Selection{Selectors: []string{id}},
		Reason: "by roost run",
	})
	for _, r := range results {
		if r.GetError() != "" && roost.ErrorKind(r.GetKind()) != roost.Finished {
			fmt.Fprintf(c.Stderr, "roost: %s\n", WithSubject(r.GetId(), r.GetError()))
		}
	}
	if err != nil && c.Context.Err() == nil {
		fmt.Fprintf(c.Stderr, "roost: %s\n", frame.ErrorText(err))
	}
}

// reportEnd says how the job ended, where its exit status does not, and ends with that
// status.
func reportEnd(c *frame.Invocation, t *Progress, interrupted, quiet bool, logs error) error {
	if logs != nil {
		fmt.Fprintf(c.Stderr, "roost: the output may not be whole: %s\n", frame.ErrorText(logs))
	}
	s := t.onlyJob()
	if s == nil {
		return frame.KindErrorf(roost.Internal, "the schedd lost sight of the job")
	}
	e := s.GetExit()
	switch {
	case interrupted && document.FailedCount(s) > 0:
		return frame.ExitError(128 + 2)
	case e.GetReason() != "" || e.GetSignal() != 0:
		fmt.Fprintf(c.Stderr, "roost: %s: %s\n", s.GetId(), document.EndText(e))
	case e == nil:
		fmt.Fprintf(c.Stderr, "roost: %s: %s\n", s.GetId(),
			strings.TrimSuffix("removed: "+document.PrintableText(s.GetReason()), ": "))
	}
	if code := document.TaskCode(s); code != 0 {
		return frame.ExitError(code)
	}
	if !quiet {
		hint(c, s.GetId())
	}
	return nil
}

// runProgress says why nothing happens, when for a while nothing does, and that the job
// could not be started.
type runProgress struct {
	*frame.Invocation
	began       time.Time
	lastReason  string
	startFailed chan<- string // takes one reason
	quiet       bool
}

const silentWait = 2 * time.Second

func (p *runProgress) update(t *Progress, _ *scheddapi.WatchEvent) {
	s := t.onlyJob()
	if document.StateOf(s) == "held" && s.GetExit().GetCause() == scheddapi.Cause_CAUSE_LAUNCH {
		select {
		case p.startFailed <- document.EndText(s.GetExit()):
		default:
		}
		return
	}
	if s == nil || p.quiet || !p.ErrScreen.Terminal || p.Now().Sub(p.began) < silentWait {
		return
	}
	state := document.StateOf(s)
	if !slices.Contains([]string{"idle", "held", "blocked"}, state) || s.GetReason() == "" ||
		s.GetReason() == p.lastReason {
		return
	}
	p.lastReason = s.GetReason()
	fmt.Fprintln(p.Stderr, p.ErrScreen.ColourText(frame.Dim,
		fmt.Sprintf("roost: %s is %s: %s", s.GetId(), state, document.PrintableText(p.lastReason))))
}

func (p *runProgress) end(*Progress) {}

// followOutput copies the output of a task, through restarts of the schedd.
func followOutput(c *frame.Invocation, req *scheddapi.LogsRequest, to io.Writer) error {
	return followChunks(c, req, func(chunk *scheddapi.LogChunk) error {
		_, err := to.Write(chunk.GetData())
		return err
	})
}

// followChunks calls print with each piece of the output of a task, through restarts of
// the schedd.
func followChunks(c *frame.Invocation, req *scheddapi.LogsRequest, print func(*scheddapi.LogChunk) error) error {
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	return c.Retry(frame.WatchTimeout, func(ctx context.Context, alive func()) error {
		stream, err := s.Logs(ctx, req)
		if err != nil {
			return err
		}
		attempt := uint32(0)
		for {
			chunk, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return frame.DecodeError(err)
			}
			alive()
			if attempt != 0 && chunk.GetAttempt() != attempt {
				req.Offset = 0
			}
			attempt = chunk.GetAttempt()
			err = print(chunk)
			if _, known := errors.AsType[*frame.KindError](err); known {
				return err
			}
			if err != nil {
				return frame.KindErrorf(roost.NoOutput, "write: %v", err)
			}
			req.Offset, req.Tail = max(req.GetOffset(), chunk.GetOffset())+int64(len(chunk.GetData())), 0
		}
	})
}
