package negotiator

import (
	"cmp"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// state is what part a negotiator plays among its replicas. The package's comment draws it.
type state int

const (
	following state = iota // another leads, or nobody
	rising                 // the replica leads, and the entry that says so is under way
	leading                // it is committed: there is a cell
)

func (s state) String() string { return [...]string{"following", "rising", "leading"}[s] }

// become changes the state, where that may be.
func (l *loop) become(next state) {
	ok := next == following || l.state+1 == next
	if !ok || (next == leading) != (l.cell != nil) {
		panic(fmt.Sprintf("negotiator: from %v to %v, cell %v", l.state, next, l.cell != nil))
	}
	l.state, l.again = next, time.Time{}
}

// turned takes in news of who leads. A term in which this replica leads that follows one in which it did, too, is another's time as a leader in
// between, of which nothing was heard.
func (l *loop) turned(now time.Time, j journal, news replica.Leadership) {
	before := l.news
	l.news = news
	if l.state != following && (!news.Leads || news.Term != before.Term) {
		l.fall()
	}
	if news.Leads && l.state == following {
		l.rise(now, j)
	}
	l.place()
}

// rise has an entry committed by which this negotiator leads from then on. Its epoch is higher than all before, so what an earlier leader
// proposes after it is void.
func (l *loop) rise(now time.Time, j journal) {
	l.become(rising)
	l.rises++
	l.propose(now, j, &ledger.Entry{Lead: l.node, Accounts: l.old}, draft{})
}

// risen begins to lead. All that earlier leaders have promised was applied before the entry that made the epoch.
func (l *loop) risen(now time.Time, epoch uint64) {
	if l.old != nil {
		l.old = nil
		l.taken()
	}
	l.cell = newCell(epoch, l.inventory, l.record, l.log)
	l.cell.inherit(now)
	l.become(leading)
	l.place()
	l.log.Info("this negotiator leads", "epoch", epoch, "machines", len(l.inventory.machines))
}

// fall ends the lead: all conversations end, and what was not committed is not sent.
func (l *loop) fall() {
	if l.cell != nil {
		outcome{draft: l.cell.draft, err: l.elsewhere()}.answer()
		l.cell.end(l.elsewhere())
		l.log.Info("this negotiator leads no more", "epoch", l.cell.epoch, "leader", l.news.Leader)
	}
	l.cell = nil
	l.become(following)
	l.place()
}

// place tells everybody who asks who leads.
func (l *loop) place() {
	leader := l.news.Leader
	if l.news.Leads {
		leader = l.address
	}
	l.standing.move(func(p *position) {
		p.leads, p.leader = l.state == leading, leader
		if l.cell != nil {
			p.epoch = max(p.epoch, l.cell.epoch)
		}
	})
}

// elsewhere is why nobody can negotiate here now.
func (l *loop) elsewhere() error {
	where := cmp.Or(l.news.Leader, "which is not known yet")
	if where == l.address {
		where = "which this one is about to be"
	}
	return fmt.Errorf("negotiator %s: %w: only the leader negotiates: %s", l.node, roost.Unavailable, where)
}
