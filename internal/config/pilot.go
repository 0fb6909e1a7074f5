package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
)

// ListenRelay in a startd's listen stands for the relays on all collectors of the pool.
const ListenRelay = "relay"

// PilotSettings says that a startd is a pilot. It runs in an allocation of another batch
// system, for one user, until the allocation ends.
type PilotSettings struct {
	Owner roost.PilotOwner // as in its certificate
	// when it has to be gone, by this machine's clock; zero: unknown, so that tasks of
	// any length may begin
	Until time.Time
	// the same by the clock of the pool's authority; zero: tasks of any length may begin
	PoolUntil time.Time
	Idle      time.Duration // without tasks, after which it ends; 0: it does not
	FirstIdle time.Duration // likewise before its first task; 0: Idle
	Provider  string        // for display; so the next
	Key       string
	Host      string
}

func (s *blockReader) readPilot(settings **PilotSettings) {
	b := s.singleBlock("pilot")
	if b == nil {
		return
	}
	to := &PilotSettings{}
	*settings = to
	p := s.innerBlock(b)
	p.readSetting("owner", `"ada@login1"`, func(text string) (err error) {
		to.Owner, err = roost.ParsePilotOwner(text)
		return err
	})
	for name, at := range map[string]*time.Time{"until": &to.Until, "pool_until": &to.PoolUntil} {
		p.readSetting(name, `"2026-11-30T12:00:00Z"`, func(text string) (err error) {
			*at, err = time.Parse(time.RFC3339, text)
			return err
		})
	}
	p.readDuration("idle", `"5m"`, &to.Idle)
	p.readDuration("first_idle", `"20m"`, &to.FirstIdle)
	p.readText("provider", &to.Provider)
	p.readText("key", &to.Key)
	p.readText("host", &to.Host)
	p.reportUnknown()
	if to.Owner.User == "" {
		s.addProblem(b.TypeRange, `add owner = "ada"`, "a pilot runs the tasks of one user, and this one has none")
	}
	if to.Until.IsZero() && !to.PoolUntil.IsZero() {
		s.addProblem(b.TypeRange, "write until, too", "pilot: until and pool_until are the same instant by two clocks")
	}
}

func (w fileWriter) writePilot(p *PilotSettings) {
	if p == nil {
		return
	}
	b := w.writeBlock("pilot")
	b.writeText("owner", p.Owner.String())
	if !p.Until.IsZero() {
		b.writeText("until", p.Until.Format(time.RFC3339))
	}
	if !p.PoolUntil.IsZero() {
		b.writeText("pool_until", p.PoolUntil.Format(time.RFC3339))
	}
	b.writeDuration("idle", p.Idle)
	b.writeDuration("first_idle", p.FirstIdle)
	b.writeText("provider", p.Provider)
	b.writeText("key", p.Key)
	b.writeText("host", p.Host)
}

// resolveRelays replaces ListenRelay by the addresses of the pool's collectors.
func (n *Node) resolveRelays() {
	for i := range n.Startds {
		for j, addr := range n.Startds[i].Listen {
			if addr != ListenRelay {
				continue
			}
			var relays []string
			for _, collector := range n.Collectors {
				if !isLocalAddress(collector) {
					relays = append(relays, collector)
				}
			}
			n.Startds[i].Listen[j] = rpc.RelayPrefix + strings.Join(relays, ",")
		}
	}
}

// checkRelays returns an error for a startd that is to be reached through relays where
// there are none.
func (n *Node) checkRelays() error {
	for i := range n.Startds {
		if slices.Contains(n.Startds[i].Listen, rpc.RelayPrefix) {
			return fmt.Errorf("%w: startd %s: listen = [%q] needs collectors that have addresses in the network: "+
				"add collectors = [\"host:port\"]", roost.BadConfig, n.Startds[i].Name, ListenRelay)
		}
	}
	return nil
}

// isRelayAddress reports whether a daemon is reached through relays at an address.
func isRelayAddress(addr string) bool { return strings.HasPrefix(addr, rpc.RelayPrefix) }

// checkRelayTarget returns what is wrong with the address of a startd behind relays.
func checkRelayTarget(addr string) error {
	for _, one := range strings.Split(strings.TrimPrefix(addr, rpc.RelayPrefix), ",") {
		if network, target, err := rpc.SplitAddress(one); err != nil || network != "tcp" || isWildcardAddress(target) {
			return fmt.Errorf("%q is not the address of a collector", one)
		}
	}
	return nil
}
