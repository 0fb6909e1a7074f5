package cellqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/schedd/journal"
)

// BenchmarkAppend compares a commit of a replicated queue with one of a queue on one host
// alone.
func BenchmarkAppend(b *testing.B) {
	for _, members := range []int{0, 1, 3} {
		b.Run(fmt.Sprint(members, " members"), func(b *testing.B) {
			keys := 0
			if members == 0 {
				j, q, err := journal.Open(b.TempDir(), queueName)
				if err != nil {
					b.Fatal(err)
				}
				defer j.Close()
				s := &testSchedd{Rand: rand.New(rand.NewPCG(1, 7)), TB: b, keys: &keys, journal: j, queue: q,
					now: time.Unix(1_700_000_000, 0)}
				for b.Loop() {
					s.submitAndAppend()
				}
				return
			}
			c := newTestCell(b, members, replica.SnapshotPolicy{})
			s := c.lead(c.leader(), 1, &keys)
			defer s.stepDown()
			for b.Loop() {
				s.submitAndAppend()
			}
		})
	}
}

// BenchmarkSubmit measures how much longer a submission takes in a queue of three members
// than in that of one host. It makes them in turn, so both have the same machine and
// disk. The members are in one process: the network between hosts adds its round trip.
func BenchmarkSubmit(b *testing.B) {
	keys := [2]int{}
	j, q, err := journal.Open(b.TempDir(), queueName)
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	local := &testSchedd{Rand: rand.New(rand.NewPCG(1, 7)), TB: b, keys: &keys[0], journal: j, queue: q,
		now: time.Unix(1_700_000_000, 0)}
	c := (&testCell{TB: b, members: make([]*testMember, 3), election: 3 * time.Second}).startAll()
	replicated := c.lead(c.leader(), 1, &keys[1])
	defer replicated.stepDown()
	var took [2][]time.Duration
	for b.Loop() {
		for i, s := range []*testSchedd{local, replicated} {
			began := time.Now()
			s.submitAndAppend()
			took[i] = append(took[i], time.Since(began))
		}
	}
	var median [2]float64 // milliseconds
	for i := range took {
		slices.Sort(took[i])
		median[i] = took[i][len(took[i])/2].Seconds() * 1e3
	}
	b.ReportMetric(median[0], "local-ms")
	b.ReportMetric(median[1], "cell-ms")
	b.ReportMetric(median[1]-median[0], "more-ms")
	b.ReportMetric(median[1]/median[0], "ratio")
}

func (s *testSchedd) submitAndAppend() {
	s.Helper()
	events := s.submit()
	for _, e := range events {
		s.queue.Apply(e)
	}
	if err := s.journal.Append(events); err != nil {
		s.Fatal(err)
	}
}
