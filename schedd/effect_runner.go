package schedd

import (
	"time"

	"github.com/roost-batch/roost/schedd/history"
)

// effectRunner does outside the loop what the loop does not wait for. The results come
// back as events.
type effectRunner interface {
	// connect begins the upkeep of a session with a node, until the peer's stop is
	// called.
	connect(node, address string) *nodeConn
	// postLater has an op run in a later turn.
	postLater(loopCall)
	// archive writes jobs into the history; moved is to be called then.
	archive(records []history.JobRecord, before map[uint64]int)
}

// daemonEffects are those of a daemon.
type daemonEffects struct{ *Schedd }

func (e daemonEffects) connect(node, address string) *nodeConn {
	return e.Schedd.startSession(e.daemonContext, node, address)
}

func (e daemonEffects) postLater(o loopCall) { go e.postEvent(e.daemonContext, o) }

func (e daemonEffects) archive(records []history.JobRecord, before map[uint64]int) {
	go func() {
		err := e.Schedd.archive.writeHistory(records)
		e.postEvent(e.daemonContext, loopCall(func(now time.Time) {
			e.Schedd.archive.removeArchived(now, records,
				before, err)
		}))
	}()
}
