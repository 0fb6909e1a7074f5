package criu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// agentRequest is a request to an agent: one dump, restore or self-test.
type agentRequest struct {
	Dump    *DumpSpec     `json:",omitempty"`
	Restore *RestoreSpec  `json:",omitempty"`
	Try     *selfTestSpec `json:",omitempty"`
}

// agentReply is the reply of an agent.
type agentReply struct {
	Dump    *DumpResult      `json:",omitempty"`
	Restore *RestoreResult   `json:",omitempty"`
	Failure *CheckpointError `json:",omitempty"` // a failure of the task
	Error   string           `json:",omitempty"` // an error of the machine
}

// Encode returns the standard input of the agent of a restore. A starter that runs the
// agent itself uses it, and Decode for the agent's standard output.
func (s *RestoreSpec) Encode() ([]byte, error) { return json.Marshal(agentRequest{Restore: s}) }

// Decode reads the standard output of the agent of a restore. The error is why nothing
// was restored: a *CheckpointError, or an error of the machine.
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

// ServeAgent executes the request on in and answers on out. It is all of the command
// "checkpoint-agent". exe is this program, which is run again with the rights of users,
// and by Check. An error has already been sent as the answer; the process should exit
// with a status for it.
func ServeAgent(in io.Reader, out io.Writer, exe string) error {
	// Descriptors that leaked from the parent must not be inherited by CRIU or by the
	// process of a self-test: they would be dumped, and a lock on one would be waited for
	// without end.
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
		defer time.AfterFunc(restoreTimeout(q.Restore.Dir), func() { abortRestore(out) }).Stop()
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

// abortRestore ends a restore that hangs, for example on a file lock that another process
// holds. The starter kills the restored processes.
func abortRestore(out io.Writer) {
	text, err := json.Marshal(agentReply{Failure: &CheckpointError{Reason: "it took too long to restore"}})
	if err == nil {
		out.Write(text)
	}
	group := os.Getpid()
	if unix.Getpgrp() == group {
		group = -group // CRIU is in this process group
	}
	syscall.Kill(group, syscall.SIGKILL)
}

func serveRequest(q *agentRequest, exe string) (a agentReply, err error) {
	switch {
	case q.Dump != nil:
		if err := checkRootOwned(q.Dump.CRIU); err != nil {
			return a, err
		}
		// make CRIU the last process that the OOM killer kills, where root may do so
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

// How long a restore may take: what reading its image takes on a slow disk, in bytes per
// second, and a minute more. Usually it takes less than a second. One that hangs is
// better made again, here or elsewhere, than waited for.
const (
	restoreTime = time.Minute
	restoreRate = 20 << 20
)

// restoreTimeout bounds the restore of what lies in a staging directory.
func restoreTimeout(dir string) time.Duration {
	var size int64
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return restoreTime + time.Duration(float64(size)/restoreRate*float64(time.Second))
}

func timeoutOrDefault(d time.Duration) time.Duration {
	if d <= 0 {
		return 10 * time.Minute
	}
	return d
}

// Dump takes a checkpoint of a running task into spec.Dir. It runs an agent as "exe
// checkpoint-agent". If the dump fails, is cancelled or times out, the task runs on as
// before. The error is then a *CheckpointError if the task is the reason, and the
// contents of spec.Dir are useless. A task that was frozen stays frozen. Times in the
// result are valid even after a failure.
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

// repairTask restores a task's normal state after an agent that may have been killed.
// Without its tracer every process runs on by itself, but the cgroup may still be frozen,
// and the first process may no longer die with its parent.
func repairTask(spec *DumpSpec, stopped bool) {
	if stopped {
		return
	}
	thawCgroup(spec.Group)
	if spec.InitStop {
		signalInit(spec.PID, syscall.SIGUSR1, detachTimeout)
	}
}

// agentEnv is set in the environment of agents. A program that ignores its first
// argument, such as a test, would otherwise start an agent as an agent, and so on without
// end.
const agentEnv = "ROOST_CHECKPOINT_AGENT"

// runAgent runs an agent for one request.
func runAgent(ctx context.Context, exe string, q agentRequest) (agentReply, error) {
	if os.Getenv(agentEnv) != "" {
		return agentReply{}, fmt.Errorf("checkpoint agent %s: %w: this program does not run as an agent and would "+
			"start another", exe, roost.Internal)
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

// waitForCRIU waits until CRIU, in the process group of its dead agent, has ended. CRIU
// notices that the agent is dead and releases the task. Killing CRIU would be unsafe: a
// process in which it is executing a system call would retain the registers of that call.
func waitForCRIU(group int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		syscall.Wait4(-group, nil, syscall.WNOHANG, nil) // reaps orphans if this process is their subreaper
		if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
			return
		}
	}
	syscall.Kill(-group, syscall.SIGKILL)
}

// cappedBuffer is a buffer that drops what exceeds its bound.
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

// ReadFrom hides the buffer's own method, which has no bound.
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
