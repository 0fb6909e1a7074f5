package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// environment returns the environment of every command, and therefore of jobs that copy
// it.
func (a *systemAgent) environment() []string {
	env := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "SGE_ROOT=" + sgeRoot, "SGE_CELL=default",
		"_CONDOR_TOOL_DEBUG=D_ERROR"}
	if a.Root != "" {
		return append(env, "HOME=/home/bench")
	}
	env[0] = "PATH=" + filepath.Dir(a.Roost) + ":/usr/sbin:/usr/bin:/sbin:/bin"
	return append(env, "HOME=/root", "ROOST_DIR="+filepath.Join(a.Work, "pool"))
}

// command returns a command of the user, or with root of the administrator.
func (a *systemAgent) command(ctx context.Context, root bool, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = a.environment(), a.Work
	cmd.Path, cmd.Err = lookUpProgram(cmd.Env[0], argv[0])
	cmd.WaitDelay = time.Second // its background processes may have its output open
	if !root && a.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.uid)}}
	}
	return cmd
}

// lookUpProgram finds a program in the PATH of the command, and not in that of this
// process.
func lookUpProgram(path, program string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, dir := range filepath.SplitList(strings.TrimPrefix(path, "PATH=")) {
		if file := filepath.Join(dir, program); unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return program, &exec.Error{Name: program, Err: exec.ErrNotFound}
}

// runAsUser runs a command of the user to its end and returns its output.
func (a *systemAgent) runAsUser(ctx context.Context, argv ...string) (string, error) {
	return finishCommand(a.command(ctx, false, argv...))
}

// runAsAdmin runs a command of the administrator.
func (a *systemAgent) runAsAdmin(ctx context.Context, argv ...string) (string, error) {
	return finishCommand(a.command(ctx, true, argv...))
}

func finishCommand(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if err != nil {
		outputText := strings.TrimSpace(errs.String() + " " + out.String())
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[:min(len(cmd.Args), 4)], " "), err,
			outputText[max(0, len(outputText)-300):])
	}
	return out.String(), err
}

// startDaemon starts a program of the administrator that becomes a daemon, or runs beside
// this process. Its output goes to a file with its name.
func (a *systemAgent) startDaemon(name string, argv ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(a.Work, name+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := a.command(context.Background(), true, argv...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

// pollUntil calls done periodically until it returns true.
func pollUntil(ctx context.Context, every time.Duration, what string, done func() bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
	return nil
}

func sleepContext(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// prepareDirectory creates the bench's directory, and in it the program of jobs that
// report when they start.
func (a *systemAgent) prepareDirectory() error {
	if err := os.MkdirAll(a.Work, 0o755); err != nil {
		return err
	}
	if err := os.Chown(a.Work, a.uid, a.uid); err != nil {
		return err
	}
	os.Remove(a.makeFIFO())
	if err := unix.Mkfifo(a.makeFIFO(), 0o600); err != nil {
		return err
	}
	if err := os.Chown(a.makeFIFO(), a.uid, a.uid); err != nil {
		return err
	}
	return a.writeFile("stamp", "#!/bin/sh\necho started >"+a.makeFIFO()+"\n", 0o755)
}

func (a *systemAgent) makeFIFO() string            { return filepath.Join(a.Work, "started") }
func (a *systemAgent) filePath(name string) string { return filepath.Join(a.Work, name) }

// writeFile writes a file in the bench's directory.
func (a *systemAgent) writeFile(name, text string, mode os.FileMode) error {
	return errors.Join(os.WriteFile(a.filePath(name), []byte(text), mode), os.Chmod(a.filePath(name), mode))
}

// awaitNoJobs waits until there are no jobs.
func (a *systemAgent) awaitNoJobs(ctx context.Context) error {
	return pollUntil(ctx, 100*time.Millisecond, "the queue does not become empty", func() bool {
		out, err := a.runAsUser(ctx, a.listCommand()...)
		return err == nil && len(bytes.TrimSpace([]byte(out))) == 0
	})
}

// removeAllJobs removes all jobs.
func (a *systemAgent) removeAllJobs(ctx context.Context) error {
	if _, err := a.runAsUser(ctx, a.clearQueue()...); err != nil {
		if out, lerr := a.runAsUser(ctx, a.listCommand()...); lerr == nil && strings.TrimSpace(out) == "" {
			return nil // there was nothing to remove
		}
		return err
	}
	return a.awaitNoJobs(ctx)
}
