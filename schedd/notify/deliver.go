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

// deliver gives a message to the mail program, and to the hook. If one of them does not take it both get it again.
func (n *Notifier) deliver(ctx context.Context, who person, m *message) error {
	if len(m.to) == 0 {
		n.log.Warn("there is nobody to tell", "job", m.notices[0].ID, "owner", m.notices[0].Owner)
		return nil
	}
	var errs []error
	if n.own.Mail != "" {
		arguments := append([]string{"-i", "--"}, m.to...)
		errs = append(errs, n.run(ctx, who, m, n.own.Mail, arguments, m.mail(n.own.From, n.host, time.Now())))
	}
	if n.own.Hook != "" {
		errs = append(errs, n.run(ctx, who, m, n.own.Hook, []string{m.notices[0].What.String(), m.notices[0].ID}, m.document()))
	}
	return errors.Join(errs...)
}

// maxSaid bounds what is kept of what a program prints.
const maxSaid = 1 << 10

// run runs a program as the owner of the job. Nothing but its standard input and arguments is of the job.
func (n *Notifier) run(ctx context.Context, who person, m *message, path string, arguments []string, input []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	owner := m.notices[0].Owner
	cmd := exec.CommandContext(ctx, path, arguments...)
	cmd.Dir, cmd.Stdin = "/", bytes.NewReader(input)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", "HOME=/", "LOGNAME=" + owner, "USER=" + owner, "SHELL=/bin/sh"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid := os.Geteuid(); uid == 0 && who.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid, Groups: n.groups(who.uid)}
	} else if uid != 0 && uint32(uid) != who.uid {
		return fmt.Errorf("%s: %w: only root may act for another user", path, roost.PermissionDenied)
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var said strings.Builder
	text := limited{&said}
	cmd.Stdout, cmd.Stderr = text, text
	err := cmd.Run()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: it was not done in %v", roost.Unavailable, patience)
	}
	if s := strings.TrimSpace(plain(said.String())); s != "" {
		err = fmt.Errorf("%w: %s", err, s)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// limited keeps the beginning of what is written.
type limited struct{ to *strings.Builder }

func (l limited) Write(p []byte) (int, error) {
	l.to.Write(p[:min(len(p), max(maxSaid-l.to.Len(), 0))])
	return len(p), nil
}
