package schedd

import (
	"github.com/roost-batch/roost/schedd/feed"
)

// newFeed returns the accounting feed. It leaves the room that the job log has for
// itself.
func (s *Schedd) newFeed() *feed.Feed {
	return feed.New(feed.Options{
		Dir: s.stateDir(), Host: s.node.Name, Wanted: s.node.AccountantAt != "", GroupName: s.users.GroupName,
		HasRoom: func() bool { return s.reserve.FreeBytes() > s.reserve.Size }, Log: s.log,
	})
}
