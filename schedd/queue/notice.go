package queue

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
)

// Occasion is what somebody is told of.
type Occasion uint8

// The occasions (POSIX XCU qsub, -m): the letters b, e and a.
const (
	Begun Occasion = iota + 1
	Finished
	Aborted // by the batch system, or by somebody else than its owner
)

func (o Occasion) String() string {
	return [...]string{Begun: "begun", Finished: "ended", Aborted: "aborted"}[o]
}

// Notice is what somebody asked to be told of a job, or of a task of an array.
type Notice struct {
	What     Occasion
	Time     int64 // unix nanoseconds
	ID       string
	Name     string
	Queue    string
	Owner    string
	UID, GID uint32
	Users    string // whom to tell, with commas between; empty: the owner
	Node     string
	Reason   string
	Exit     *Exit // nil: there was none
	Tasks    int   // of an array that is told of as a whole, so the next
	Failed   int
	Removed  int
}

// mail is what an ad says of notices.
type mail struct {
	begun, ended, aborted, each bool // each: of the tasks of an array
	users                       string
}

func (r *reader) mail() *mail {
	points := r.text(roost.AttrMailPoints, "")
	if strings.Trim(points, "abej") != "" && points != "n" {
		r.fail(roost.AttrMailPoints, "of the letters a, b, e and j, or n")
	}
	if points == "" || points == "n" {
		return nil
	}
	has := func(letter string) bool { return strings.Contains(points, letter) }
	return &mail{has("b"), has("e"), has("a"), has("j"), r.text(roost.AttrMailUsers, "")}
}

// Notice is what is to be told of an event that has just been applied; false for nothing. An array without -m j is told of as a whole: when its first task starts,
// and when the last has ended.
func (q *Queue) Notice(e Event) (n Notice, ok bool) {
	j := q.jobs[e.Job]
	if j == nil || j.plan.mail == nil {
		return n, false
	}
	m, array := j.plan.mail, j.plan.array || len(j.state) > 1 && !j.plan.led
	whole := array && !m.each
	n = Notice{
		Time: e.Time, ID: j.id(q.host).String(), Name: j.plan.name, Queue: cmp.Or(j.plan.queue, roost.UsualQueue), Owner: j.sub.Owner, UID: j.sub.UID, GID: j.sub.GID, Users: m.users,
		Reason: e.Reason,
	}
	if array {
		number, host, _ := strings.Cut(n.ID, ".")
		n.ID = number + "[]." + host
	}
	one := func() {
		if array {
			n.ID = q.Name(j.id(q.host).Task(e.Index))
		}
		if r := j.book.at(e.Index); r != nil {
			n.Node = r.node
		}
	}
	if (e.What == Started || e.What == Ended) && j.follows(e.Index) && !whole {
		return n, false // it has no program
	}
	switch e.What {
	case Started:
		if n.What = Begun; whole {
			return n, m.begun && j.began == e.Time && j.ended == 0
		}
		one()
		return n, m.begun
	case Ended:
		if whole {
			return q.all(j, n)
		}
		one()
		n.Exit, n.Reason = e.Exit, e.Exit.Reason
		return n, m.of(&n, e.Exit, j.state[e.Index])
	case RemovalRequested, Dropped:
		if whole && j.final() {
			return q.all(j, n)
		}
		if n.What = Aborted; len(e.Ranges) > 0 && !whole {
			n.ID = q.Names(e.Job).All(j.id(q.host), e.Ranges)
		}
		if e.By != "" {
			n.Reason = fmt.Sprintf("deleted by %s", e.By)
		}
		return n, m.aborted && !whole && e.By != j.sub.Owner
	}
	return n, false
}

// of reports whether the end of a task is to be told, and as what.
func (m *mail) of(n *Notice, x *Exit, state roost.TaskState) bool {
	switch {
	case x.Cause == ByRemoval: // that was told when it was asked for
		return false
	case state == roost.Completed && x.Cause == ByItself:
		n.What = Finished
		return m.ended
	case state == roost.Completed || state == roost.Held:
		n.What = Aborted
		return m.aborted || m.ended && state == roost.Completed
	}
	return false // it is run again
}

// all is the notice of a whole array that has ended.
func (q *Queue) all(j *job, n Notice) (Notice, bool) {
	if !j.final() {
		return n, false
	}
	tasks, counts, failed := j.tally()
	n.What, n.Reason, n.Tasks, n.Failed, n.Removed = Finished, "", tasks, failed, counts[roost.Removed]
	if n.Failed+n.Removed > 0 {
		n.What = Aborted
	}
	return n, j.plan.mail.ended || n.What == Aborted && j.plan.mail.aborted
}
