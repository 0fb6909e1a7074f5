package slot

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// BenchmarkDynamicPort finds, holds and frees a port while the quarantine is full. The
// port of the oldest quarantine is free again each time.
func BenchmarkDynamicPort(b *testing.B) {
	t := newPortTable(PortSettings{})
	now := roost.BootTime(time.Hour)
	step := t.settings.Quarantine / maxFreedPorts
	wanted := []roost.PortRequest{{Name: "http"}}
	turn := func(i int) {
		now += step
		t.updateQuarantines(now)
		s := portSearch{PortTable: t, now: now, job: fmt.Sprint("s1/", i)}
		ports, err := s.find(wanted)
		if err != nil {
			b.Fatal(err)
		}
		t.hold(1, ports)
		t.release(1, s.job, ports)
	}
	for i := range maxFreedPorts {
		turn(i)
	}
	for i := range b.N {
		turn(i)
	}
}
