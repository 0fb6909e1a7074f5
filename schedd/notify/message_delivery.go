package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
)

// deliverMessage passes a message to the mail program and to the hook. If one of them
// fails both get it again.
func (n *Notifier) deliverMessage(ctx context.Context, who messageRecipient, m *userMessage) error {
	if len(m.recipients) == 0 {
		n.log.Warn("there is no user to notify", "job", m.notifications[0].ID, "owner", m.notifications[0].Owner)
		return nil
	}
	var errs []error
	if n.ownUID.Mail != "" {
		arguments := append([]string{"-i", "--"}, m.recipients...)
		errs = append(errs, n.runProgram(ctx, who, m, n.ownUID.Mail, arguments,
			m.mailMessage(n.ownUID.From, n.host, time.Now())))
	}
	if n.ownUID.Hook != "" {
		errs = append(errs, n.runProgram(ctx, who, m, n.ownUID.Hook,
			[]string{m.notifications[0].What.String(), m.notifications[0].ID}, m.hookDocument()))
	}
	return errors.Join(errs...)
}

// maxProgramOutput bounds the recorded output of a program, in bytes.
const maxProgramOutput = 1 << 10

// runProgram runs a program as the owner of the job. Only its standard input and its
// arguments contain data of the job.
func (n *Notifier) runProgram(ctx context.Context, who messageRecipient, m *userMessage, path string,
	arguments []string, input []byte) error {
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	owner := m.notifications[0].Owner
	cmd := exec.CommandContext(ctx, path, arguments...)
	cmd.Dir, cmd.Stdin = "/", bytes.NewReader(input)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "HOME=/",
		"LOGNAME=" + owner, "USER=" + owner, "SHELL=/bin/sh"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid := os.Geteuid(); uid == 0 && who.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: n.groups(who.uid)}
	} else if uid != 0 && uint32(uid) != who.uid {
		return fmt.Errorf("%s: %w: only root may act for another user", path, roost.PermissionDenied)
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var output strings.Builder
	text := limitedBuffer{&output}
	cmd.Stdout, cmd.Stderr = text, text
	err := cmd.Run()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: it was not done in %v", roost.Unavailable, programTimeout)
	}
	if s := strings.TrimSpace(plainText(output.String())); s != "" {
		err = fmt.Errorf("%w: %s", err, s)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// limitedBuffer retains the beginning of what is written to it.
type limitedBuffer struct{ to *strings.Builder }

func (l limitedBuffer) Write(p []byte) (int, error) {
	l.to.Write(p[:min(len(p), max(maxProgramOutput-l.to.Len(), 0))])
	return len(p), nil
}
