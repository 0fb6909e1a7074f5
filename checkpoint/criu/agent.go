package criu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// agentRequest asks an agent for one thing.
type agentRequest struct {
	Dump    *DumpSpec     `json:",omitempty"`
	Restore *RestoreSpec  `json:",omitempty"`
	Try     *selfTestSpec `json:",omitempty"`
}

// agentReply says how it went.
type agentReply struct {
	Dump    *DumpResult      `json:",omitempty"`
	Restore *RestoreResult   `json:",omitempty"`
	Failure *CheckpointError `json:",omitempty"` // of the task
	Error   string           `json:",omitempty"` // of the machine
}

// Encode is what the agent of a restore gets on its standard input, for a starter that
// runs it itself; its standard output is for Decode.
func (s *RestoreSpec) Encode() ([]byte, error) { return json.Marshal(agentRequest{Restore: s}) }

// Decode reads what the agent of a restore has said. An error is why nothing was
// restored: a *Failure, or trouble of the machine's.
func Decode(text []byte) (RestoreResult, error) {
	r, err := decodeReply(text)
	if r.Restore == nil {
		return RestoreResult{}, err
	}
	return *r.Restore, err
}

func decodeReply(text []byte) (r agentReply, err error) {
	switch err := json.Unmarshal(text, &r); {
	case err != nil:
		return r, fmt.Errorf("checkpoint agent: %w: it ended without an answer", roost.Unavailable)
	case r.Failure != nil:
		return r, r.Failure
	case r.Error != "":
		return r, fmt.Errorf("checkpoint agent: %w: %s", roost.Unavailable, r.Error)
	}
	return r, nil
}

// ServeAgent does what the spec on in says, and answers on out. It is the whole of the
// command "checkpoint-agent". exe is this program, which is run again with the rights of
// users, and by Check. An error has been answered already; the process ought to end with
// a status for it.
func ServeAgent(in io.Reader, out io.Writer, exe string) error {
	// Whatever leaked into us from those who started us is not to go on into CRIU, nor
	// into the process of a self-test: it would be dumped, and a lock on it waited for
	// ever.
	unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	text, err := io.ReadAll(io.LimitReader(in, maxSpecSize))
	if err != nil {
		return err
	}
	var q agentRequest
	if string(text) == listenReady {
		return runListener(out)
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return fmt.Errorf("checkpoint agent: %w: %w", roost.Usage, err)
	}
	if q.Restore != nil {
		defer time.AfterFunc(timeoutOrDefault(q.Restore.Timeout), func() { abortRestore(out) }).Stop()
	}
	a, err := serveRequest(&q, exe)
	if err != nil {
		a.Error = err.Error()
	}
	text, merr := json.Marshal(a)
	if merr != nil {
		return merr
	}
	if _, werr := out.Write(text); werr != nil {
		return werr
	}
	if a.Failure != nil {
		return a.Failure
	}
	return err
}

// abortRestore ends a restore that hangs, as over a file lock that another process holds.
// What there is of the task is for the starter to kill.
func abortRestore(out io.Writer) {
	text, err := json.Marshal(agentReply{Failure: &CheckpointError{Reason: "it took too long to restore"}})
	if err == nil {
		out.Write(text)
	}
	group := os.Getpid()
	if unix.Getpgrp() == group {
		group = -group // CRIU is in it
	}
	syscall.Kill(group, syscall.SIGKILL)
}

func serveRequest(q *agentRequest, exe string) (a agentReply, err error) {
	switch {
	case q.Dump != nil:
		if err := checkRootOwned(q.Dump.CRIU); err != nil {
			return a, err
		}
		// CRIU is the last that may be killed; where root may ask for that
		os.WriteFile("/proc/self/oom_score_adj", []byte("-900"), 0)
		ctx, stop := context.WithTimeout(context.Background(), timeoutOrDefault(q.Dump.Timeout))
		defer stop()
		result, err := dumpTask(ctx, q.Dump, exe)
		return agentReply{Dump: &result, Failure: result.failure}, err
	case q.Restore != nil:
		if err := checkRootOwned(q.Restore.CRIU); err != nil {
			return a, err
		}
		result, err := restoreTask(q.Restore)
		return agentReply{Restore: &result, Failure: result.failure}, err
	case q.Try != nil:
		return a, runSelfTest(q.Try, exe)
	}
	return a, fmt.Errorf("%w: nothing is asked for", roost.Usage)
}

func timeoutOrDefault(d time.Duration) time.Duration {
	if d <= 0 {
		return 10 * time.Minute
	}
	return d
}

// Dump takes a checkpoint of a running task into spec.Dir, by an agent, which the program
// exe is when run as "exe checkpoint-agent". If it fails, is cancelled or runs out of
// time, the task runs on as before; the error is a *Failure where the reason is the
// task's, and what is in spec.Dir is of no use. A task that was frozen stays frozen.
// Times in the result are good also after a failure.
func Dump(ctx context.Context, exe string, spec DumpSpec) (DumpResult, error) {
	stopped := isFrozen(spec.Group)
	ctx, stop := context.WithTimeout(ctx, timeoutOrDefault(spec.Timeout)+10*time.Second)
	defer stop()
	a, err := runAgent(ctx, exe, agentRequest{Dump: &spec})
	if a.Dump == nil || err != nil {
		repairTask(&spec, stopped)
	}
	if a.Dump == nil {
		return DumpResult{}, err
	}
	return *a.Dump, err
}

// repairTask puts a task right after an agent that may have been killed: with its tracer
// dead every process goes on by itself, but its cgroup may be left frozen, and its first
// process unmindful of its parent.
func repairTask(spec *DumpSpec, stopped bool) {
	if stopped {
		return
	}
	thawCgroup(spec.Group)
	if spec.InitStop {
		signalInit(spec.PID, syscall.SIGUSR1, detachTimeout)
	}
}

// agentEnv is in the environment of agents. A program that takes no notice of its first
// argument, such as that of a test, would do as an agent what it did to start one, and so
// on until the machine stands still.
const agentEnv = "ROOST_CHECKPOINT_AGENT"

// runAgent runs an agent for one request.
func runAgent(ctx context.Context, exe string, q agentRequest) (agentReply, error) {
	if os.Getenv(agentEnv) != "" {
		return agentReply{}, fmt.Errorf("checkpoint agent %s: %w: it knows nothing of being an agent, and wants "+
			"to start another", exe, roost.Internal)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return agentReply{}, err
	}
	c := exec.CommandContext(ctx, exe, AgentName)
	var out, log bytes.Buffer
	c.Dir, c.Env, c.Stdin = "/", []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", agentEnv + "=1"},
		bytes.NewReader(text)
	c.Stdout, c.Stderr = &cappedBuffer{&out, maxSpecSize}, &cappedBuffer{&log, 4096}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.WaitDelay = time.Second
	err = c.Run()
	switch {
	case c.Process == nil:
	case q.Dump != nil:
		waitForCRIU(c.Process.Pid)
	case q.Try != nil:
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	if ctx.Err() != nil && out.Len() == 0 {
		return agentReply{}, &CheckpointError{Reason: "it took too long", Detail: []string{context.Cause(ctx).Error()}}
	}
	if c.Process == nil {
		return agentReply{}, fmt.Errorf("checkpoint agent %s: %w: %w", exe, roost.Unavailable, err)
	}
	a, derr := decodeReply(out.Bytes())
	if derr != nil && out.Len() == 0 && log.Len() > 0 {
		derr = fmt.Errorf("%w: %s", derr, bytes.TrimSpace(log.Bytes()))
	}
	return a, derr
}

// waitForCRIU waits until CRIU has ended, which is of the process group of its agent. It
// notices that the agent is gone, and lets the task go. To kill it would be unsafe: a
// process in which it is just making a system call would be left with the registers of
// that.
func waitForCRIU(group int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		syscall.Wait4(-group, nil, syscall.WNOHANG, nil) // where orphans fall to us
		if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
			return
		}
	}
	syscall.Kill(-group, syscall.SIGKILL)
}

// cappedBuffer is a buffer that drops what is too much.
type cappedBuffer struct {
	*bytes.Buffer
	remaining int
}

func (c *cappedBuffer) Write(p []byte) (int, error) {
	part := p[:min(len(p), c.remaining)]
	c.remaining -= len(part)
	c.Buffer.Write(part)
	return len(p), nil
}

// ReadFrom hides that of the buffer, which knows no bound.
func (c *cappedBuffer) ReadFrom(r io.Reader) (n int64, err error) {
	buf := make([]byte, 4096)
	for {
		m, err := r.Read(buf)
		c.Write(buf[:m])
		n += int64(m)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
