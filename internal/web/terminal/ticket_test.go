package terminal

import (
	"errors"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/web/session"
)

// TestTickets checks that a ticket is good for its session and task, once, for 10
// seconds.
func TestTickets(t *testing.T) {
	k, now := newTicketStore(), time.Now()
	k.now = func() time.Time { return now }
	mine, other := &session.Session{}, &session.Session{}
	for name, c := range map[string]struct {
		session *session.Session
		task    string
		after   time.Duration
		want    bool
	}{
		"good":               {mine, "1.n1", 9 * time.Second, true},
		"of another session": {other, "1.n1", 0, false},
		"of another task":    {mine, "2.n1", 0, false},
		"expired":            {mine, "1.n1", ticketLife, false},
	} {
		secret, _, err := k.issue(mine, "1.n1")
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(c.after)
		if got := k.take(secret, c.session, c.task); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
		if k.take(secret, mine, "1.n1") {
			t.Errorf("%s: it is good a second time", name)
		}
	}
	for range maxTickets {
		if _, _, err := k.issue(mine, "1.n1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := k.issue(mine, "1.n1"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("one more: %v", err)
	}
	now = now.Add(ticketLife)
	if _, _, err := k.issue(mine, "1.n1"); err != nil || len(k.of) != 1 {
		t.Errorf("after their time: %v, %d tickets", err, len(k.of))
	}
}
