package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
)

// queueChoiceLoop is a loop that does what it is asked to at once.
type queueChoiceLoop struct{ Loop }

func (queueChoiceLoop) CallLoop(_ context.Context, f func(time.Time)) error {
	f(time.Now())
	return nil
}
func (queueChoiceLoop) SubmitLimits() queue.SubmitLimits { return queue.SubmitLimits{} }

// choosingSchedd is a schedd of a pool, with what its collectors have said.
func choosingSchedd(pool string, setting config.QueueChoice, synced, cellQueue bool) *Service {
	p := peers.New("n1", nil, slog.New(slog.DiscardHandler))
	if cellQueue {
		p.OnAdChanged(time.Now(), []adclient.AdChange{{Name: "physics", Ad: "[]"}})
	}
	if synced {
		p.OnSync()
	}
	return New(Config{Node: &config.Node{Name: "n1", Pool: pool, Schedd: &config.ScheddSettings{SubmitTo: setting}},
		Peers: p, Loop: queueChoiceLoop{}, Queue: queue.New("n1")})
}

// TestQueueChoice has the command, the jobs and the node file say which queue takes a
// submission.
func TestQueueChoice(t *testing.T) {
	batch, service, terminal := "[]", "[Service=[]]", "[Interactive=true]"
	inCell, onHost := "[CellQueue=true]", "[CellQueue=false; Service=[]]"
	for _, test := range []struct {
		command string
		jobs    []string
		setting config.QueueChoice
		pool    string // without a queue of the cell if it is n1
		want    string // "cell", "host", or the error
	}{
		{"", []string{batch}, "", "physics", "host"},
		{"", []string{batch, service}, "", "physics", "cell"},
		{"", []string{service}, "", "n1", "host"},
		{"", []string{service}, "", "empty", "host"},
		{"", []string{service}, config.SubmitToHost, "physics", "host"},
		{"", []string{batch}, config.SubmitToCell, "physics", "cell"},
		{"", []string{batch, terminal}, config.SubmitToCell, "physics", "host"},
		{"", []string{batch, inCell}, config.SubmitToHost, "physics", "cell"},
		{"", []string{onHost}, config.SubmitToCell, "physics", "host"},
		{"", []string{inCell, onHost}, "", "physics", "invalid"},
		{"", []string{"[CellQueue={}]"}, "", "physics", "invalid"},
		{".", []string{inCell}, config.SubmitToCell, "physics", "host"},
		{"n1", []string{service}, "", "physics", "host"},
		{"@", []string{onHost}, config.SubmitToHost, "physics", "cell"},
		{"physics", []string{batch}, "", "physics", "cell"},
		{"n2", []string{batch}, "", "physics", "invalid"},
		{"", []string{service}, "", "silent", "unavailable"},
	} {
		t.Run(fmt.Sprint(test.command, test.jobs, test.setting, test.pool), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := choosingSchedd(test.pool, test.setting, test.pool != "silent", test.pool == "physics")
				var specs []queue.SubmitSpec
				for _, text := range test.jobs {
					ad, err := classad.Parse(text)
					if err != nil {
						t.Fatal(err)
					}
					specs = append(specs, queue.SubmitSpec{Ad: ad, Count: 1})
				}
				cell, err := goesToCell(t.Context(), s, queue.CallerIdentity{User: "ann"},
					&wire.SubmitRequest{Key: "k", Schedd: test.command}, specs)
				if got := choiceText(cell, err); got != test.want {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
			})
		})
	}
}

func choiceText(cell bool, err error) string {
	switch {
	case errors.Is(err, roost.Invalid):
		return "invalid"
	case errors.Is(err, roost.Unavailable):
		return "unavailable"
	case err != nil:
		return err.Error()
	case cell:
		return "cell"
	}
	return "host"
}

// TestRepeatedService has a service submitted again with its key when the pool has got a
// queue of the cell. It stays where it is.
func TestRepeatedService(t *testing.T) {
	s := choosingSchedd("physics", "", true, true)
	ad, err := classad.Parse(`[MyType="Job"; JobName="hub"; Cmd="/bin/true"; Iwd="/"; RequestCpus=1; RequestMemory=1;
		RequestDisk=1; Service=[]]`)
	if err != nil {
		t.Fatal(err)
	}
	who, specs := queue.CallerIdentity{User: "ann", UID: 7}, []queue.SubmitSpec{{Ad: ad, Count: 1}}
	submit := func(key string) (cell bool) {
		cell, err := goesToCell(t.Context(), s, who, &wire.SubmitRequest{Key: key}, specs)
		if err != nil {
			t.Fatal(err)
		}
		return cell
	}
	if !submit("before") {
		t.Error("a new service stays on its submit node")
	}
	events, _, _, err := s.queue.SubmitJobs(time.Now(), who, "before", specs, queue.SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		s.queue.Apply(events[i])
	}
	if submit("before") {
		t.Error("a service that is in the queue of its submit node would be submitted to the cell again")
	}
	if !submit("after") {
		t.Error("another key goes with the first one")
	}
}
