package guard

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// ruleFile remembers how the owner's file was when it was read.
type ruleFile struct {
	read bool
	size int64 // -1: it was not there
	at   time.Time
}

// readRules reads the owner's own file where it has changed. A mistake in it keeps the machine from being lent, for nobody knows what he wanted.
func (g *guard) readRules() {
	now := ruleFile{read: true, size: -1}
	if st, err := os.Stat(g.node.Owner.File); err == nil {
		now.size, now.at = st.Size(), st.ModTime()
	}
	if now == g.rulesRead {
		return
	}
	g.rulesRead = now
	r, err := config.LoadOwner(g.node.Owner.File)
	next := rules{version: g.state.rules.version + 1, paused: r.Paused, owners: r.Owners, foreignCPU: r.ForeignCPU.Cores(), onBattery: r.OnBattery, exclusive: r.Exclusive}
	if err != nil {
		// Who may decide stays as it was: the one who has to get rid of the mistake must be able to.
		next.owners, next.foreignCPU, next.exclusive = g.state.rules.owners, g.state.rules.foreignCPU, g.state.rules.exclusive
		next.wrong = firstLine(err.Error())
		g.log.Error("the owner's file has a mistake: the machine is not lent", "err", next.wrong)
	}
	g.state.rules = next
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// exclusive are the programs that the owner wants to have the machine for themselves.
func (g *guard) exclusive() (names []string) {
	if g.ask(context.Background(), func() { names = slices.Clone(g.state.rules.exclusive) }) != nil {
		return nil
	}
	return names
}

// policy names the policies by which the machine is lent, for people.
func (g *guard) policy() string {
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

// noticesNobody reports whether the policy of a startd takes no notice of people, as a server's: there only the owner's word stops tasks.
func (g *guard) noticesNobody(name string) bool {
	d, ok := g.node.Startd(name)
	return ok && !d.Guarded()
}
