package master

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
)

// testDaemonEnv is the variable that makes this test binary act as a master or one of its
// daemons.
const testDaemonEnv = "ROOST_TEST_STAND_IN"

// TestMain acts as a process under test if the binary is started as one. "run FILE" and
// "up DIR NODES" are masters, other arguments are daemons.
func TestMain(m *testing.M) {
	if os.Getenv(testDaemonEnv) == "" {
		os.Exit(m.Run())
	}
	if err := playRole(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func playRole(args []string) error {
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	ready := func() { fmt.Println("ready") }
	switch args[0] {
	case "run", "strict", "impatient":
		node, err := config.Load(args[1])
		if err != nil {
			return err
		}
		opt := RunOptions{Ready: ready, Strict: args[0] == "strict"}
		if args[0] == "impatient" {
			opt.StopTimeout = time.Second
		}
		err = Run(ctx, node, opt)
		if errors.Is(err, ErrReplaced) {
			return syscall.Exec(os.Args[0], os.Args, os.Environ())
		}
		return err
	case "up":
		return Up(ctx, UpOptions{Dir: args[1], Nodes: 2, CPUs: 8000, Stdout: os.Stdout})
	}
	return playDaemon(ctx, args)
}

// playDaemon is a fake daemon. The file behave-ROLE in the node's directory controls it.
func playDaemon(ctx context.Context, args []string) error {
	node, err := config.Load(args[2])
	if err != nil {
		return err
	}
	role := strings.Join(append(args[:1:1], args[3:]...), " ")
	say := func(what string) {
		f, err := os.OpenFile(filepath.Join(node.Dir, "events"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, role, what)
		f.Close()
	}
	behave, _ := os.ReadFile(filepath.Join(node.Dir, "behave-"+args[0]))
	say("starts")
	switch string(behave) {
	case "die":
		return fmt.Errorf("%s: the disk is on fire", args[0])
	case "leave a child":
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(node.Dir, "child"), fmt.Append(nil, child.Process.Pid),
			0o600); err != nil {
			return err
		}
	}
	say("serves")
	daemon.ReportReady()
	<-ctx.Done()
	if string(behave) == "stay" {
		select {}
	}
	say("stops")
	return nil
}
