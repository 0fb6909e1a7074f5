package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

var (
	one  = roost.JobID{Seq: 1, Host: "s1"}
	two  = roost.JobID{Seq: 2, Host: "s1"}
	core = roost.Resources{CPU: 1000}
)

// The words of the histories below. Each stands a second after the one before, unless it says otherwise.
func printed(key string, id roost.JobID) Seen {
	return Seen{What: Printed, Key: key, Job: id, Tasks: 1, Resources: core}
}

func of(what What, attempt roost.Attempt, node string) Seen {
	return Seen{What: what, Job: one, Attempt: attempt, Node: node, Claim: uint64(attempt), Resources: core}
}

func claimed(what What, node string, claim uint64, until time.Duration) Seen {
	return Seen{What: what, Node: node, Claim: claim, Resources: core, Until: until}
}

func offered(node string, cores roost.MilliCPU) Seen {
	return Seen{What: Offered, Node: node, Resources: roost.Resources{CPU: 1000 * cores}}
}

func used(node string, entry uint64, until time.Duration, amount float64) Seen {
	return Seen{What: Used, Node: node, Who: "ann", Entry: entry, Until: until, Amount: amount}
}

func rated(entry uint64, until time.Duration, cores float64) Seen {
	return Seen{What: Rated, Who: "ann", Entry: entry, Until: until, Amount: cores}
}

func digest(node string, entry, digest uint64) Seen {
	return Seen{What: Digested, Node: node, Entry: entry, Digest: digest}
}

// clocked is an entry at a time of the ledger's.
func clocked(entry uint64, until time.Duration) Seen {
	return Seen{What: Digested, Node: "n1", Entry: entry, Digest: entry, Until: until}
}

func at(t time.Duration, s Seen) Seen { s.At = t; return s }

// run is a task that is run and recorded as it should be.
func run(attempt roost.Attempt, node string) []Seen {
	return []Seen{
		claimed(Leased, node, uint64(attempt), time.Hour), of(Assigned, attempt, node), of(Began, attempt, node), of(Ended, attempt, node),
		of(Stored, attempt, node), of(Completed, attempt, node), claimed(Freed, node, uint64(attempt), 0),
	}
}

func join(parts ...any) (all []Seen) {
	for _, p := range parts {
		switch p := p.(type) {
		case Seen:
			all = append(all, p)
		case []Seen:
			all = append(all, p...)
		}
	}
	return all
}

// watch has an auditor see a history, and returns him.
func watch(history []Seen) *Auditor {
	a := New(DefaultRules())
	now := time.Duration(0)
	for _, s := range history {
		if now += time.Second; s.At > 0 {
			now = s.At
		}
		s.At = now
		a.See(s)
	}
	return a
}

// Each promise is broken by a history of its own, and by nothing else in it.
func TestEachPromiseIsBroken(t *testing.T) {
	begin := join(offered("m1", 2), offered("m2", 2), printed("k", one))
	hold := Seen{What: HeldBack, Job: one, Index: All}
	for _, c := range []struct {
		name    string
		promise Promise
		says    string
		history []Seen
	}{
		{"a printed id is not on disk", 1, "1.s1 was shown to a user, and the schedd knows nothing of it",
			join(begin, Seen{What: Recovered, Node: "s1", Jobs: []roost.JobID{two}})},
		{"an id is given twice", 1, "1.s1 was the job of the key k, and is that of the key l now", join(begin, printed("l", one))},
		{"a job goes that has not ended", 1, "its task 0 has not come to an end", join(begin, Seen{What: Left, Job: one})},
		{"a key makes two jobs", 2, "the key k has made 1.s1 and 2.s1", join(begin, printed("k", two))},
		{"a key makes a job on disk that nobody is shown", 2, "the key k has made 1.s1 and 2.s1",
			join(begin, Seen{What: Taken, Node: "s1", Key: "k", Job: two, Tasks: 1})},
		{"two completions", 3, "attempt 1 of 1[0].s1 is recorded as its last, and attempt 1 was before", join(begin, run(1, "m1"), of(Completed, 1, "m1"))},
		{"a start after completion", 3, "attempt 2 of 1[0].s1 begins after attempt 1 was recorded as its last",
			join(begin, run(1, "m1"), of(Began, 2, "m1"))},
		{"a record after completion", 3, "attempt 2 of 1[0].s1 is recorded, which was over", join(begin, run(1, "m1"), of(Assigned, 2, "m1"))},
		{"an old attempt completes", 3, "attempt 1 of 1[0].s1 is recorded as its last, and attempt 2 is",
			join(begin, run(1, "m1")[:5], of(Assigned, 2, "m2"), of(Completed, 1, "m1"))},
		{"completion of what lives", 3, "while attempt 1 lives on m1",
			join(begin, run(1, "m1")[:3], of(Stored, 1, "m1"), of(Completed, 1, "m1"))},
		{"completion of what never ran", 3, "and never ran", join(begin, of(Assigned, 1, "m1"), of(Stored, 1, "m1"), of(Completed, 1, "m1"))},
		{"completion with another code", 3, "is recorded with code 7, and ended with 0",
			join(begin, run(1, "m1")[:5], Seen{What: Completed, Job: one, Attempt: 1, Code: 7})},
		{"two live", 4, "attempt 2 of 1[0].s1 begins on m2, and attempt 1 lives on m1", join(begin, run(1, "m1")[:3], of(Assigned, 2, "m2"), of(Began, 2, "m2"))},
		{"a number falls", 4, "attempt 1 of 1[0].s1 is recorded after attempt 1, and numbers only rise",
			join(begin, of(Assigned, 1, "m1"), of(Assigned, 1, "m2"))},
		{"one that slept lives on beside another", 4, "attempt 1 of 1[0].s1 lived on m1 until 2.000s after it woke, and attempt 2 had begun",
			join(begin, run(1, "m1")[:3], Seen{What: Froze, Node: "m1"}, of(Assigned, 2, "m2"), of(Began, 2, "m2"), Seen{What: Woke, Node: "m1"},
				Seen{What: Injected}, of(Ended, 1, "m1"))},
		{"books give away too much", 5, "by its books m1 has given away 3 cores, and has 2 cores",
			join(begin, claimed(Leased, "m1", 1, time.Hour), claimed(Leased, "m1", 2, time.Hour), claimed(Leased, "m1", 3, time.Hour))},
		{"more lives than there is", 5, "by what lives there m1 has given away 2 cores, and has 1 cores",
			join(offered("m1", 1), printed("k", one), printed("l", two), run(1, "m1")[:3], claimed(Freed, "m1", 1, 0),
				Seen{What: Began, Job: two, Attempt: 1, Node: "m1", Resources: core})},
		{"negative usage", 6, "ann has used -1 core-seconds by n1", join(used("n1", 1, 0, -1))},
		{"usage falls", 6, "ann had used 20.000 core-seconds by n1, and has used 10.000 now",
			join(rated(1, 0, 2), used("n1", 1, 10*time.Second, 20), used("n1", 2, 10*time.Second, 10))},
		{"charged twice", 6, "ann has used 60.000 core-seconds by n1, and by what the log says 40.000",
			join(rated(1, 0, 2), used("n1", 2, 10*time.Second, 20), used("n1", 3, 20*time.Second, 60))},
		{"never charged", 6, "ann has used 0.000 core-seconds by n1, and by what the log says 20.000",
			join(rated(1, 0, 2), used("n1", 2, 10*time.Second, 0))},
		{"replicas differ", 7, "after entry 5 n1 has the state 000000000000000a, and n2 000000000000000b", join(digest("n1", 5, 10), digest("n2", 5, 11))},
		{"a start after a hold", 8, "attempt 1 of 1[0].s1 is recorded after a user was told that none starts", join(begin, hold, of(Assigned, 1, "m1"))},
		{"a hold that only the schedd knows of", 8, "attempt 2 of 1[0].s1 begins after a user was told that none starts",
			join(begin, run(1, "m1")[:4], hold, of(Began, 2, "m1"))},
		{"a task hangs", 9, "1[0].s1 could run since 4.000s, m1 has had room for it since 5.000s",
			join(begin, Seen{What: Calm}, at(5*time.Second, digest("n1", 1, 1)), at(66*time.Second, digest("n1", 2, 1)))},
		{"a lease is over", 10, "attempt 1 of 1[0].s1 lives on m1, and the lease of claim 1 was over at 60.000s",
			join(begin, claimed(Leased, "m1", 1, time.Minute), of(Began, 1, "m1"), at(71*time.Second, of(Ended, 1, "m1")))},
		{"a lease is over when a machine wakes", 10, "the lease of claim 1 was over at 60.000s",
			join(begin, claimed(Leased, "m1", 1, time.Minute), of(Began, 1, "m1"), Seen{What: Froze, Node: "m1"}, at(time.Hour, Seen{What: Woke, Node: "m1"}),
				at(time.Hour+11*time.Second, of(Ended, 1, "m1")))},
		{"no output", 11, "attempt 1 of 1[0].s1 is recorded as its last, and its output is not at the submit side",
			join(begin, run(1, "m1")[:4], of(Completed, 1, "m1"))},
		{"output is lost", 11, "its output is not at the submit side", join(begin, run(1, "m1")[:5], of(Unstored, 1, "m1"), of(Completed, 1, "m1"))},
		{"a task runs on beside an owner", ToOwners, "attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 7.000s",
			join(begin, run(1, "m1")[:3], Seen{What: Seated, Node: "m1"}, of(Ended, 1, "m1"))},
		{"one goes on too early", ToOwners, "attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 7.000s",
			join(begin, run(1, "m1")[:3], Seen{What: Seated, Node: "m1"}, at(7250*time.Millisecond, of(Stood, 1, "m1")), of(WentOn, 1, "m1"), Seen{What: Away, Node: "m1"})},
		{"one begins beside an owner", ToOwners, "attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 4.000s",
			join(begin, Seen{What: Seated, Node: "m1"}, run(1, "m1")[:4])},
		{"one runs when its machine wakes", ToOwners, "attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 8.000s",
			join(begin, run(1, "m1")[:3], Seen{What: Froze, Node: "m1"}, Seen{What: Seated, Node: "m1"}, Seen{What: Woke, Node: "m1"}, of(Ended, 1, "m1"))},
		{"one runs on when a guard has looked", ToOwners, "attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 8.000s",
			join(begin, run(1, "m1")[:3], Seen{What: Unwatched, Node: "m1"}, Seen{What: Seated, Node: "m1"}, Seen{What: Watched, Node: "m1"}, of(Ended, 1, "m1"))},
		{"one runs on without a guard", ToOwners, "attempt 1 of 1[0].s1 runs on m1, and nothing is heard of its guard since 8.000s",
			join(begin, run(1, "m1")[:3], Seen{What: Unwatched, Node: "m1"}, Seen{What: Missed, Node: "m1"}, of(Ended, 1, "m1"))},
		{"one begins without a guard", ToOwners, "attempt 1 of 1[0].s1 runs on m1, and nothing is heard of its guard since 4.000s",
			join(begin, Seen{What: Missed, Node: "m1"}, run(1, "m1")[:4])},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := watch(c.history).Broken()
			if len(all) == 0 || all[0].Promise != c.promise || !strings.Contains(all[0].Text, c.says) {
				t.Fatalf("got %v, want %v: %s", all, c.promise, c.says)
			}
			for _, b := range all {
				if b.Promise != c.promise {
					t.Errorf("besides: %v", b)
				}
			}
			if text := all[0].String(); !strings.Contains(text, all[0].Promise.Sentence()) || len(all[0].History) == 0 {
				t.Errorf("it is told as\n%s", text)
			}
		})
	}
}

// A history in which all goes wrong that may, and nothing is broken.
func TestNothingIsBroken(t *testing.T) {
	hold := Seen{What: HeldBack, Job: one, Index: All}
	history := join(
		offered("m1", 1), offered("m2", 1),
		Seen{What: Taken, Node: "s1", Key: "k", Job: one, Tasks: 1, Resources: core}, printed("k", one), printed("k", one), // the same key again
		claimed(Leased, "m1", 1, 30*time.Second), of(Assigned, 1, "m1"), hold, of(Began, 1, "m1"), // it was on its way
		claimed(Renewed, "m1", 1, 60*time.Second), Seen{What: Recovered, Node: "s1", Jobs: []roost.JobID{one}},
		at(69*time.Second, of(Ended, 1, "m1")), claimed(Freed, "m1", 1, 0), Seen{What: LetGo, Job: one, Index: All},
		claimed(Leased, "m1", 2, 100*time.Second), of(Assigned, 2, "m1"), of(Began, 2, "m1"),
		Seen{What: Froze, Node: "m1"}, // beyond its lease
		at(120*time.Second, claimed(Leased, "m2", 3, time.Hour)), of(Assigned, 3, "m2"), of(Began, 3, "m2"), of(Ended, 3, "m2"), of(Stored, 3, "m2"),
		of(Unstored, 3, "m2"), of(Stored, 3, "m2"), of(Completed, 3, "m2"), Seen{What: Woke, Node: "m1"}, of(Ended, 2, "m1"), Seen{What: Left, Job: one},
		digest("n1", 3, 6), rated(3, 0, 1), clocked(4, 10*time.Second), rated(4, 10*time.Second, 3), used("n1", 4, 20*time.Second, 40), digest("n2", 3, 6), rated(3, 0, 1),
		used("n2", 3, 8*time.Second, 8), clocked(5, 100*time.Second), used("n1", 5, 100*time.Second, 280), // a clock is put right then
		clocked(6, 30*time.Second), used("n1", 6, 30*time.Second, 70), clocked(7, 40*time.Second), rated(7, 40*time.Second, 0), used("n1", 7, 50*time.Second, 100),
		printed("l", two), Seen{What: Injected, Node: "m2", Note: "cut off"}, Seen{What: Calm}, offered("m1", 0), offered("m2", 0),
		at(time.Hour, Seen{What: Removed, Job: two}),
		Seen{What: Seated, Node: "m1"}, Seen{What: Began, Job: two, Attempt: 1, Node: "m2", Resources: core}, Seen{What: Seated, Node: "m2"},
		at(3603250*time.Millisecond, Seen{What: Stood, Job: two, Attempt: 1, Node: "m2"}), Seen{What: Away, Node: "m2"}, Seen{What: WentOn, Job: two, Attempt: 1, Node: "m2"},
		Seen{What: Unwatched, Node: "m2"}, Seen{What: Seated, Node: "m2"}, Seen{What: Missed, Node: "m2"}, // nobody sees him
		at(3608500*time.Millisecond, Seen{What: Stood, Job: two, Attempt: 1, Node: "m2"}), Seen{What: Watched, Node: "m2"}, Seen{What: Away, Node: "m2"}, Seen{What: Heard, Node: "m2"},
		Seen{What: WentOn, Job: two, Attempt: 1, Node: "m2"},
		Seen{What: Away, Node: "m1"}, Seen{What: Recovered, Node: "s1", Jobs: []roost.JobID{one, two}},
	)
	a := watch(history)
	a.Finish(2 * time.Hour)
	for _, b := range a.Broken() {
		t.Error(b.String())
	}
}

// What has not ended when all is over is told, once for each task.
func TestWhatNeverEnds(t *testing.T) {
	a := watch(join(printed("k", one), printed("l", two), Seen{What: HeldBack, Job: one, Index: All, Note: Removal}, Seen{What: Calm}))
	a.Finish(time.Hour)
	if all := a.Broken(); len(all) != 2 || all[0].Promise != 9 || !strings.HasPrefix(all[1].Text, "2[0].s1 has not come to its end by 3600.000s") {
		t.Errorf("%v", all)
	}
}

// What is free may be held for a larger task, as long as that waits for what still runs; when nothing does any more, somebody has to move.
func TestRoomThatIsHeld(t *testing.T) {
	large := Seen{What: Printed, Key: "l", Job: two, Tasks: 1, Resources: roost.Resources{CPU: 2000}}
	begin := join(offered("m1", 2), printed("k", one), run(1, "m1")[:3], large, printed("m", roost.JobID{Seq: 3, Host: "s1"}), Seen{What: Calm})
	look := func(seconds time.Duration) Seen { return at(seconds*time.Second, digest("n1", uint64(seconds), 1)) }
	if all := watch(join(begin, look(10), look(200))).Broken(); len(all) != 0 {
		t.Errorf("while it waits for what runs: %v", all)
	}
	ends := join(at(200*time.Second, of(Ended, 1, "m1")), look(203), look(270))
	if all := watch(join(begin, look(10), ends)).Broken(); len(all) == 0 || all[0].Promise != 9 {
		t.Errorf("when all is free: %v", all)
	}
}
