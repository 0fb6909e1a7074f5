package owner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// guardTimeout is how long a command waits for the guard of this machine. It answers
// within a quarter of a second, or is not there.
const guardTimeout = 3 * time.Second

// GuardAddress is where the guard of this machine is.
type GuardAddress struct {
	dir    string // of the node
	Socket string
}

// NearestGuard finds the guard of a directory that is named, of the user's own pool, or
// of the host.
func NearestGuard(c *frame.Invocation) (GuardAddress, error) {
	named := c.StringFlag("dir") != "" || c.Getenv("ROOST_DIR") != ""
	own, err := config.PoolDir(c.StringFlag("dir"), c.Getenv)
	if err != nil && named {
		return GuardAddress{}, err
	}
	host := &config.Node{Dir: config.SystemDir}
	places := []GuardAddress{{own, filepath.Join(own, "run", config.GuardSocket)},
		{host.Dir, strings.TrimPrefix(host.GuardAddress(), "unix:")}}
	if named {
		places = places[:1]
	}
	for _, g := range places {
		if g.dir == "" {
			continue
		}
		_, err := os.Stat(g.Socket)
		if errors.Is(err, fs.ErrPermission) {
			return g, frame.KindErrorf(roost.PermissionDenied, "the pool at %s belongs to another user", g.dir)
		}
		if err == nil {
			return g, nil
		}
	}
	for _, g := range places { // a node whose guard does not run has a directory for it
		if _, err := os.Stat(filepath.Join(g.dir, "owner")); g.dir != "" && err == nil {
			return g, nil
		}
	}
	return places[len(places)-1], nil
}

// WithGuard does one exchange with the guard, or calls absent where no guard answers.
// Absent is done where no guard answers.
func WithGuard(c *frame.Invocation, g GuardAddress, f func(ctx context.Context, w wire.GuardClient) error,
	absent func(cause error) error) error {
	conn, err := rpc.Dial("unix:"+g.Socket, nil, peer.Startd)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.Context, guardTimeout)
	defer cancel()
	err = rpc.FromStatus(f(ctx, wire.NewGuardClient(conn)))
	if errors.Is(err, roost.Unavailable) {
		return absent(err)
	}
	return err
}

// noGuard is the error where no guard answers and who asks may do nothing by himself.
func (g GuardAddress) noGuard() error {
	if _, err := os.Stat(g.Socket); err == nil {
		return frame.WithHint(frame.KindErrorf(roost.Unavailable, "the guard of this machine does not answer at %s",
			g.Socket),
			"as root the command works without it; start it with: systemctl start roost-guard")
	}
	return frame.WithHint(frame.KindErrorf(roost.Unavailable, "this machine has no guard: there is none at %s",
		g.Socket),
		"a node whose startd has a policy for a desktop has one (roost-node(5)), and so has a pool of: roost "+
			"up --desktop")
}

// machineStatus says how a machine stands after a decision of its owner.
func machineStatus(c *frame.Invocation, r *wire.OwnerReply, how string) error {
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"pause": pauseDocument(r.GetPause()),
			"frozen":       r.GetFrozen(),
			"took_seconds": time.Duration(r.GetTook()).Seconds()})
	}
	if p := r.GetPause(); p == nil {
		fmt.Fprintf(c.Stdout, "lent again, whenever you are away%s\n", how)
	} else {
		fmt.Fprintf(c.Stdout, "%s%s\n", pauseText(c, p), how)
	}
	took := time.Duration(r.GetTook()).Round(100 * time.Microsecond)
	switch n := int(r.GetFrozen()); {
	case r.GetPause() == nil && n > 0:
		fmt.Fprintf(c.Stdout, "%s still %s; the startd lets them go on when its policy allows\n",
			document.Plural(n, "task"),
			printStatus(n))
	case r.GetPause() == nil:
	case n == 0:
		fmt.Fprintf(c.Stdout, "nothing runs; it took %v\n", took)
	default:
		fmt.Fprintf(c.Stdout, "%s %s still; it took %v\n", document.Plural(n, "task"), printStatus(n), took)
	}
	return nil
}

func printStatus(n int) string {
	if n == 1 {
		return "stands"
	}
	return "stand"
}

// pauseText says what a pause is, for people.
func pauseText(c *frame.Invocation, p *wire.Pause) string {
	text := "paused for good"
	if p.GetUntil() != 0 {
		end := document.TimeOfNanos(p.GetUntil()).In(c.Now().Location())
		layout := "Mon 2 Jan 2006 15:04"
		if y, m, d := c.Now().Date(); end.Year() == y && end.Month() == m && end.Day() == d {
			layout = "15:04"
		}
		text = "paused until " + end.Format(layout)
	}
	if p.GetBy() != "" {
		text += " by " + document.PrintableText(p.GetBy())
	}
	if p.GetReason() != "" {
		text += ": " + document.PrintableText(p.GetReason())
	}
	return text
}

func pauseDocument(p *wire.Pause) *document.MachinePause {
	if p == nil {
		return nil
	}
	return &document.MachinePause{Until: document.Timestamp(p.GetUntil()), By: p.GetBy(),
		Since: document.Timestamp(p.GetSince()), Reason: p.GetReason()}
}

// OwnsPool reports whether the pool in dir is this user's.
func OwnsPool(dir string) bool {
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid()
}
