package slot

import (
	"fmt"
	"io"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// claims is the step that shows what a machine's ad says about its claims. It prints
// whether a new ad is worthwhile, then one line for each claim. Tasks can be saved if the
// step says so, and "saved" is when they were last saved, in seconds since the script's
// start.
func (s *scriptRunner) claims(out io.Writer, w stepArguments) {
	epoch := time.Unix(1_000_000, 0)
	saved := func(*Claim) CheckpointInfo {
		v := CheckpointInfo{Possible: w.text("can", "") != ""}
		if n := w.number("saved", 0); n > 0 {
			v.Last = epoch.Add(time.Duration(n) * time.Second)
		}
		return v
	}
	fmt.Fprintf(out, "news %v\n", s.core.IsClaimsAdStale(s.now, saved))
	ad := classad.New()
	s.core.DescribeClaims(ad, ClockReading{s.now, epoch.Add(s.now)}, saved)
	for _, c := range s.core.Claims() { // what was printed earlier is what is printed now
		if c.printed.value.Kind() != classad.AdValue || !c.hasPlacement {
			continue
		}
		got, want := c.printed.value.Expr().String(), c.describe(ClockReading{s.now, epoch.Add(s.now)}, saved).String()
		if got != want {
			panic(fmt.Sprintf("%v is advertised as %s, and is %s", c, got, want))
		}
	}
	list, _ := ad.Eval(roost.AttrClaims, nil).Elements(nil)
	for _, v := range list {
		fmt.Fprintln(out, v)
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "nobody has anything")
	}
}
