package jobad

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
)

// TestCheckTimeouts checks how long a check may take that says nothing about that. A
// command has time to begin, however often it is run.
func TestCheckTimeouts(t *testing.T) {
	for _, c := range []struct {
		check string
		want  time.Duration
	}{
		{`Kind = "exec"; Command = {"true"}; Every = 1`, 5 * time.Second},
		{`Kind = "exec"; Command = {"true"}; Every = 60`, 5 * time.Second},
		{`Kind = "exec"; Command = {"true"}; Every = 2; Timeout = 1`, time.Second},
		{`Kind = "tcp"; Port = "http"; Every = 1`, time.Second},
		{`Kind = "tcp"; Port = "http"; Every = 60`, 5 * time.Second},
	} {
		ad, err := classad.Parse(`[Cmd = "a"; Service = []; Ports = {[Name = "http"]}; Checks = {[Name = "up"; ` + c.check + `]}]`)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := ReadSpec(ad)
		if err != nil {
			t.Fatalf("%s: %v", c.check, err)
		}
		if len(spec.Service.Checks) != 1 || spec.Service.Checks[0].Timeout != c.want {
			t.Errorf("%s: got %+v, want a timeout of %v", c.check, spec.Service.Checks, c.want)
		}
	}
}
