package pilots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/provision"
	"github.com/roost-batch/roost/internal/provision/provider"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// logFile is where a provisioner in the background writes its log.
func (p places) logFile() string { return filepath.Join(p.dir, "log") }

// maxLogBytes is the size above which a log is begun anew when a provisioner starts.
const maxLogBytes = 8 << 20

// startTimeout is how long a provisioner may take to answer.
const startTimeout = 20 * time.Second

// startInBackground starts a provisioner that outlives this command.
func startInBackground(c *frame.Invocation, p places) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return frame.KindErrorf(roost.NoOutput, "provisioner: %v", err)
	}
	if info, err := os.Stat(p.logFile()); err == nil && info.Size() > maxLogBytes {
		os.Rename(p.logFile(), p.logFile()+".old")
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "provisioner: %v", err)
	}
	defer log.Close()
	program, err := siblingProgram(frame.MainProgram)
	if err != nil {
		return err
	}
	line := []string{"pilots", "run"}
	if dir := c.StringFlag("dir"); dir != "" {
		line = append(line, "--dir", dir)
	}
	cmd := exec.Command(program, line...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return frame.KindErrorf(roost.Unavailable, "provisioner: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		select {
		case <-ended:
			return frame.KindErrorf(roost.Unavailable, "the provisioner ended at once: %s", lastLogLine(p.logFile()))
		case <-ticker.C:
			if provision.IsRunning(p.dir) {
				return nil
			}
		}
	}
	return frame.KindErrorf(roost.Unavailable, "the provisioner does not answer; its log is %s", p.logFile())
}

func lastLogLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(lines[len(lines)-1])
}

// siblingProgram is the path of a program that lies beside this one.
func siblingProgram(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", frame.KindErrorf(roost.NoInput, "own program: %v", err)
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// runProvisioner runs the provisioner until it is told to end.
func runProvisioner(c *frame.Invocation, _ []string) error {
	p, err := findPlaces(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	source := &provision.QueueSource{}
	var conn scheddapi.Conn
	source.Connect = func() (*scheddapi.ScheddClient, error) {
		if conn == nil {
			var err error
			if conn, err = c.DialSchedd(); err != nil {
				return nil, err
			}
		}
		return scheddapi.NewScheddClient(conn), nil
	}
	source.Disconnect = func() {
		if conn != nil {
			conn.Close()
			conn = nil
		}
	}
	defer source.Disconnect()
	v := &provision.Provisioner{Dir: p.dir, Load: p.load, Source: source, Tokens: &commandTokens{c},
		Log: slog.New(slog.NewTextHandler(c.Stderr, nil))}
	err = v.Run(ctx)
	if errors.Is(err, roost.Conflict) {
		return frame.WithHint(err, "to see what it does: roost pilots list")
	}
	return err
}

// commandTokens gets tokens for pilots from the command that prints them.
type commandTokens struct{ *frame.Invocation }

// tokenTimeout bounds the command.
const tokenTimeout = 30 * time.Second

// PilotToken returns a token for some pilots.
func (t *commandTokens) PilotToken(ctx context.Context, _ *provider.Settings, pilots int,
	lifetime time.Duration) (string, error) {
	program, err := siblingProgram(frame.MainProgram)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	line := []string{"token", "--pilots", fmt.Sprint(pilots), "--expires", fmt.Sprintf("%ds", int(lifetime.Seconds()))}
	if dir := t.StringFlag("dir"); dir != "" {
		line = append(line, "--dir", dir)
	}
	cmd := exec.CommandContext(ctx, program, line...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = t.Env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("roost token: %w: %s", roost.Unavailable, strings.TrimSpace(stderr.String()))
	}
	token := strings.TrimSpace(stdout.String())
	if token == "" {
		return "", fmt.Errorf("roost token: %w: it printed no token", roost.Unavailable)
	}
	return token + "\n", nil
}
