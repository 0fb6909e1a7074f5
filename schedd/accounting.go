package schedd

import (
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/schedd/feed"
	"github.com/roost-batch/roost/schedd/usagewindow"
)

// newFeed returns the accounting feed. It leaves the room that the job log has for
// itself.
func (s *Schedd) newFeed() *feed.Feed {
	return feed.New(feed.Options{
		Dir: s.stateDir(), Host: s.node.Name, Wanted: s.node.AccountantAt != "", GroupName: s.users.GroupName,
		HasRoom: func() bool { return s.reserve.FreeBytes() > s.reserve.Size }, Log: s.log,
	})
}

// addUsage adds an hour of an attempt's usage to the feed of a schedd.
func addUsage(s *Schedd, a usagewindow.Attempt, u *accounting.UsageHour) {
	if s.feed != nil {
		s.feed.AddUsage(s.queue, a.Job, a.Index, a.Attempt, u)
	}
}
