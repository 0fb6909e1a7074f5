package cli

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
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// guardTimeout is how long a command waits for the guard of this machine. It answers
// within a quarter of a second, or is not there.
const guardTimeout = 3 * time.Second

// guardAddress is where the guard of this machine is.
type guardAddress struct {
	dir    string // of the node
	socket string
}

// nearestGuard finds it as other commands find a pool: in the directory that is named, or
// else in the user's own pool, or else in the host's.
func (c *invocation) nearestGuard() (guardAddress, error) {
	named := c.stringFlag("dir") != "" || c.getenv("ROOST_DIR") != ""
	own, err := config.PoolDir(c.stringFlag("dir"), c.getenv)
	if err != nil && named {
		return guardAddress{}, err
	}
	host := &config.Node{Dir: config.SystemDir}
	places := []guardAddress{{own, filepath.Join(own, "run", config.GuardSocket)},
		{host.Dir, strings.TrimPrefix(host.GuardAddress(), "unix:")}}
	if named {
		places = places[:1]
	}
	for _, g := range places {
		if g.dir == "" {
			continue
		}
		_, err := os.Stat(g.socket)
		if errors.Is(err, fs.ErrPermission) {
			return g, kindErrorf(roost.PermissionDenied, "the pool at %s belongs to another user", g.dir)
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

// withGuard does one exchange with the guard. Absent is done where no guard answers.
func (c *invocation) withGuard(g guardAddress, f func(ctx context.Context, w wire.GuardClient) error,
	absent func(cause error) error) error {
	conn, err := rpc.Dial("unix:"+g.socket, nil, peer.Startd)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.ctx, guardTimeout)
	defer cancel()
	err = decodeError(f(ctx, wire.NewGuardClient(conn)))
	if errors.Is(err, roost.Unavailable) {
		return absent(err)
	}
	return err
}

// noGuard is the error where no guard answers and who asks may do nothing by himself.
func (g guardAddress) noGuard() error {
	if _, err := os.Stat(g.socket); err == nil {
		return withHint(kindErrorf(roost.Unavailable, "the guard of this machine does not answer at %s", g.socket),
			"as root the command works without it; start it with: systemctl start roost-guard")
	}
	return withHint(kindErrorf(roost.Unavailable, "this machine has no guard: there is none at %s", g.socket),
		"a node whose startd has a policy for a desktop has one (roost-node(5)), and so has a pool of: roost "+
			"up --desktop")
}

// machineStatus says how a machine stands after a decision of its owner.
func (c *invocation) machineStatus(r *wire.OwnerReply, how string) error {
	if c.wantsJSON() {
		return printJSON(c.stdout, jsonDocument{"pause": pauseDocument(r.GetPause()), "frozen": r.GetFrozen(),
			"took_seconds": time.Duration(r.GetTook()).Seconds()})
	}
	if p := r.GetPause(); p == nil {
		fmt.Fprintf(c.stdout, "lent again, whenever you are away%s\n", how)
	} else {
		fmt.Fprintf(c.stdout, "%s%s\n", c.pauseText(p), how)
	}
	took := time.Duration(r.GetTook()).Round(100 * time.Microsecond)
	switch n := int(r.GetFrozen()); {
	case r.GetPause() == nil && n > 0:
		fmt.Fprintf(c.stdout, "%s still %s; the startd lets them go on when its policy allows\n", plural(n, "task"),
			printStatus(n))
	case r.GetPause() == nil:
	case n == 0:
		fmt.Fprintf(c.stdout, "nothing runs; it took %v\n", took)
	default:
		fmt.Fprintf(c.stdout, "%s %s still; it took %v\n", plural(n, "task"), printStatus(n), took)
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
func (c *invocation) pauseText(p *wire.Pause) string {
	text := "paused for good"
	if p.GetUntil() != 0 {
		end := timeOfNanos(p.GetUntil()).In(c.now().Location())
		layout := "Mon 2 Jan 2006 15:04"
		if y, m, d := c.now().Date(); end.Year() == y && end.Month() == m && end.Day() == d {
			layout = "15:04"
		}
		text = "paused until " + end.Format(layout)
	}
	if p.GetBy() != "" {
		text += " by " + printableText(p.GetBy())
	}
	if p.GetReason() != "" {
		text += ": " + printableText(p.GetReason())
	}
	return text
}

type pauseRecord struct {
	Until  string `json:"until,omitempty"` // empty: for good
	By     string `json:"by"`
	Since  string `json:"since"`
	Reason string `json:"reason,omitempty"`
}

func pauseDocument(p *wire.Pause) *pauseRecord {
	if p == nil {
		return nil
	}
	return &pauseRecord{timestamp(p.GetUntil()), p.GetBy(), timestamp(p.GetSince()), p.GetReason()}
}

// ownsPool reports whether the pool in dir is this user's.
func ownsPool(dir string) bool {
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid()
}
