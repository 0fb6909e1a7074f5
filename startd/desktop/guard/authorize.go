package guard

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// sessionsDir is where logind records who is logged in (sd-login(3) reads it, too). It
// can be read without a bus, and so when nothing else answers.
const sessionsDir = "/run/systemd/sessions"

// authorizePause returns the caller's name, and refuses callers who may not control this
// machine.
func (g *daemonContext) authorizePause(ctx context.Context) (name string, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok || !p.Local {
		return "", fmt.Errorf("guard: %w", roost.Unauthenticated)
	}
	name = userName(p.UID)
	var owners []string
	if err := g.call(ctx, func() { owners = slices.Clone(g.state.rules.pauseUsers) }); err != nil {
		return "", err
	}
	if p.UID == 0 || p.UID == uint32(os.Geteuid()) || slices.Contains(owners, name) || isSeated(sessionsDir, p.UID) {
		return name, nil
	}
	g.log.Warn("refused to let somebody decide about this machine", "user", name, "uid", p.UID)
	named := "nobody yet"
	if len(owners) > 0 {
		named = strings.Join(owners, ", ")
	}
	return "", fmt.Errorf("%s: %w: only who sits at this machine may pause and resume it, root, and whom owners "+
		"names in %s (%s)", name, roost.PermissionDenied, g.node.Owner.File, named)
}

// userName returns the name of a user, or its number.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// authorizeReport returns the caller and whether the user sits at the machine. It refuses
// users without a session here, and tasks of a user with one.
func (g *daemonContext) authorizeReport(ctx context.Context, sessions string) (p peer.Peer, atSeat bool, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok || !p.Local {
		return p, false, fmt.Errorf("guard: %w", roost.Unauthenticated)
	}
	atSeat = isSeated(sessions, p.UID)
	if isTask(int(p.PID)) {
		return p, false, fmt.Errorf("%s: %w: a task does not speak for the user of this machine", userName(p.UID),
			roost.PermissionDenied)
	}
	if !atSeat && p.UID != uint32(os.Geteuid()) && !hasSession(sessions, p.UID, func(s map[string]string) bool {
		return s["CLASS"] == "user"
	}) {
		return p, false, fmt.Errorf("%s: %w: only who has a session on this machine may say that he is there "+
			"(loginctl shows them)", userName(p.UID), roost.PermissionDenied)
	}
	return p, atSeat, nil
}

// isSeated reports whether a user has an active session at a seat of this machine. Remote
// sessions, sessions in the background and those of a greeter do not count.
func isSeated(sessions string, uid uint32) bool {
	return hasSession(sessions, uid, func(s map[string]string) bool {
		return s["ACTIVE"] == "1" && s["REMOTE"] == "0" && s["SEAT"] != "" && s["CLASS"] == "user"
	})
}

func hasSession(sessions string, uid uint32, is func(map[string]string) bool) bool {
	files, _ := filepath.Glob(filepath.Join(sessions, "*"))
	for _, file := range files {
		if s := readSession(file); s["UID"] == strconv.FormatUint(uint64(uid), 10) && is(s) {
			return true
		}
	}
	return false
}

func readSession(file string) map[string]string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	all := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			all[name] = value
		}
	}
	return all
}
