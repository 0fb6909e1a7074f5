package guard

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// ownerRuleFile remembers how the owner's file was when it was read.
type ownerRuleFile struct {
	read bool
	size int64 // -1: it was not there
	at   time.Time
}

// readRules reads the owner's own file where it has changed. A mistake in it keeps the
// machine from being lent, for nobody knows what he wanted.
func (g *daemonContext) readRules() {
	now := ownerRuleFile{read: true, size: -1}
	if st, err := os.Stat(g.node.Owner.File); err == nil {
		now.size, now.at = st.Size(), st.ModTime()
	}
	if now == g.rulesRead {
		return
	}
	g.rulesRead = now
	r, err := config.LoadOwner(g.node.Owner.File)
	next := ownerRules{version: g.state.rules.version + 1, pausedByFile: r.Paused, pauseUsers: r.Owners,
		foreignCPU: r.ForeignCPU.Cores(), runsOnBattery: r.OnBattery, exclusive: r.Exclusive}
	if err != nil {
		// Who may decide stays as it was: the one who has to get rid of the mistake must
		// be able to.
		next.pauseUsers, next.foreignCPU, next.exclusive = g.state.rules.pauseUsers, g.state.rules.foreignCPU,
			g.state.rules.exclusive
		next.fileError = firstLine(err.Error())
		g.log.Error("the owner's file has a mistake: the machine is not lent", "err", next.fileError)
	}
	g.state.rules = next
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// exclusivePrograms are the programs that the owner wants to have the machine for
// themselves.
func (g *daemonContext) exclusivePrograms() (names []string) {
	if g.call(context.Background(), func() { names = slices.Clone(g.state.rules.exclusive) }) != nil {
		return nil
	}
	return names
}

// policyNames names the policies by which the machine is lent, for people.
func (g *daemonContext) policyNames() string {
	var all, each []string
	for i := range g.node.Startds {
		d := &g.node.Startds[i]
		name := d.Policy.Preset
		if name == "" {
			name = "always"
		}
		all, each = append(all, name), append(each, name+" ("+d.Name+")")
	}
	if all = slices.Compact(all); len(all) == 1 {
		return all[0]
	}
	return strings.Join(each, ", ")
}

// ignoresPresence reports whether the policy of a startd takes no notice of people, as a
// server's: there only the owner's word stops tasks.
func (g *daemonContext) ignoresPresence(name string) bool {
	d, ok := g.node.Startd(name)
	return ok && !d.NeedsGuard()
}
