package qsub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestReservations checks what pbs_rsub and pbs_ralter accept: the options -R, -E and -D,
// "-" for none, then those of -l.
func TestReservations(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	caller := QsubCaller{Now: now, Inventory: &PoolInventory{Machines: func() ([]string, error) {
		return []string{"n1.lab", "n2.lab"}, nil
	}}}
	for _, c := range []struct{ line, want string }{
		{"1300 1400 -", "13:00-14:00 1 cpus 256MiB"},
		{"1300 - 30:00", "13:00-13:30 1 cpus 256MiB"},
		{"- 1400 1800", "13:30-14:00 1 cpus 256MiB"},
		{"1300 - - walltime=1:00:00", "13:00-14:00 1 cpus 256MiB"},
		{"1300 - 600 walltime=1:00:00", "13:00-13:10 1 cpus 256MiB"},
		{"1300 1400 1:00:00 ncpus=3,mem=2gb", "13:00-14:00 3 cpus 2GiB"},
		{"1300 1400 - select=2:ncpus=4:mem=1gb:ngpus=1+1:ncpus=1:mem=512mb place=free",
			"13:00-14:00 9 cpus 2.5GiB 2 gpus"},
		{"1300 1400 - nodes=2:ppn=4", "13:00-14:00 8 cpus 512MiB"},
		{"1300 1400 - select=1:host=n2+1:host=n1.lab+1:vnode=n2", "13:00-14:00 n1.lab n2.lab"},
		{"1300 1400 - nodes=n1+n2:ppn=2", "13:00-14:00 n1.lab n2.lab"},
		{"1300 1400 10", "Bad time specification(s): -R, -E and -D contradict each other"},
		{"1300 - -", "Bad time specification(s): two of -R, -E and -D are needed"},
		{"1400 1300 -", "Bad time specification(s): it ends before it begins"},
		{"2602281300 1300 -", "Bad time specification(s): it lies in the past"},
		{"13 1400 -", "Bad time specification(s): a time is"},
		{"1300 - 0", "Bad time specification(s): a time is"},
		{"1300 - - walltime=0", "Illegal attribute or resource value Resource_List.walltime"},
		{"1300 1400 - select=2:ncpus=1 place=scatter",
			"Illegal attribute or resource value Resource_List.place: a reservation keeps"},
		{"1300 1400 - nodes=1#excl", "Illegal attribute or resource value Resource_List.place: a reservation keeps"},
		{"1300 1400 - select=1:ncpus=1:fast=true",
			"Illegal attribute or resource value Resource_List.select: a reservation keeps"},
		{"1300 1400 - select=1:matlab=1",
			"Illegal attribute or resource value Resource_List.select: a reservation keeps"},
		{"1300 1400 - cput=5", "Illegal attribute or resource value Resource_List.cput: a reservation keeps"},
		{"1300 1400 - select=1:host=n1+1:ncpus=2",
			"Illegal attribute or resource value Resource_List.select: either each chunk"},
	} {
		words := strings.Fields(strings.ReplaceAll(" "+c.line, " - ", "  \x00 "))
		for i := range words {
			words[i] = strings.Trim(words[i], "-\x00")
		}
		got := ""
		w, err := ParseReservation(words[0], words[1], words[2], words[3:], caller)
		if err == nil {
			var start, end time.Time
			if start, end, err = w.Period(time.Time{}, time.Time{}, now); err == nil {
				got = start.Format("15:04") + "-" + end.Format("15:04")
			}
		}
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "qsub: ")
		}
		if w.CPUs > 0 && err == nil {
			got += fmt.Sprintf(" %d cpus %v", w.CPUs, w.Memory)
		}
		if w.GPUs > 0 && err == nil {
			got += fmt.Sprintf(" %d gpus", w.GPUs)
		}
		if len(w.Nodes) > 0 && err == nil {
			got += " " + strings.Join(w.Nodes, " ")
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %s; want %s", c.line, got, c.want)
		}
	}
}

// TestReservationChanges checks what one option changes of a reservation's period.
func TestReservationChanges(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	from, until := now.Add(-time.Hour), now.Add(time.Hour)
	for _, c := range []struct {
		want  ReservationRequest
		start time.Duration
		end   time.Duration
	}{
		{ReservationRequest{}, -time.Hour, time.Hour},
		{ReservationRequest{Start: now.Add(time.Minute)}, time.Minute, time.Hour},
		{ReservationRequest{End: now.Add(time.Minute)}, -time.Hour, time.Minute},
		{ReservationRequest{Duration: 3 * time.Hour}, -time.Hour, 2 * time.Hour},
		{ReservationRequest{Start: now.Add(time.Hour), Duration: time.Hour}, time.Hour, 2 * time.Hour},
	} {
		if start, end, err := c.want.Period(from, until, now); err != nil || start.Sub(now) != c.start ||
			end.Sub(now) != c.end {
			t.Errorf("%+v: from %v until %v (%v)", c.want, start, end, err)
		}
	}
	for _, w := range []ReservationRequest{{Duration: time.Minute}, {Start: now.Add(-time.Minute)}, {End: from}} {
		if start, end, err := w.Period(from, until, now); err == nil {
			t.Errorf("%+v: from %v until %v", w, start, end)
		}
	}
}

// TestReservationNames checks which destinations are reservations.
func TestReservationNames(t *testing.T) {
	for name, want := range map[string]bool{"R1": true, "R123456789": true, "R1234567890": false, "R": false,
		"r1": false, "R1x": false, roost.DefaultQueueName: false, "": false} {
		if ReservationName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
