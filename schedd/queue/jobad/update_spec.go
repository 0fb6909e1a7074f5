package jobad

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// updatePolicy reads what the ad says of updates.
func (r *adReader) updatePolicy() *update.Policy {
	p := update.DefaultPolicy()
	if !r.has(roost.AttrUpdate) {
		return &p
	}
	ad, ok := r.ad.Sub(roost.AttrUpdate)
	if !ok {
		r.fail(roost.AttrUpdate, "an ad is wanted")
		return &p
	}
	in := adReader{ad: ad}
	const longest = maxSeconds * time.Second
	p.AtOnce, _ = in.amount(roost.AttrAtOnce, p.AtOnce)
	p.Surge, _ = in.amount(roost.AttrSurge, p.Surge)
	p.MaxDown, p.MaxDownSet = in.amount(roost.AttrMaxDown, p.MaxDown)
	p.Settling = in.duration(roost.AttrSettling, p.Settling, 0, longest)
	p.ReadyWithin = in.duration(roost.AttrReadyWithin, p.ReadyWithin, time.Second, longest)
	p.Progress = in.duration(roost.AttrProgress, p.Progress, 0, longest)
	p.PromoteAfter = in.duration(roost.AttrPromoteAfter, 0, 0, longest)
	p.Pulse = in.duration(roost.AttrPulse, 0, 0, longest)
	p.Failures = int(in.number(roost.AttrFailures, 0, 0, roost.MaxTasks))
	p.Canary = int(in.number(roost.AttrCanary, 0, 0, roost.MaxTasks))
	p.Disruptions = int(in.number(roost.AttrDisruptions, -1, 0, roost.MaxTasks))
	if in.has(roost.AttrOnFailure) {
		var err error
		if p.OnFailure, err = update.ParseFailureAction(in.text(roost.AttrOnFailure, "")); err != nil {
			in.fail(roost.AttrOnFailure, err.Error())
		}
	}
	switch word := in.text(roost.AttrResize, "in-place"); word {
	case "in-place":
	case "restart":
		p.ResizeByRestart = true
	default:
		in.fail(roost.AttrResize, fmt.Sprintf("it cannot be %q: write \"in-place\" or \"restart\"", word))
	}
	if in.has(roost.AttrUpdateTasks) {
		var err error
		if p.Tasks, err = ParseUpdateTasks(in.text(roost.AttrUpdateTasks, "")); err != nil {
			in.fail(roost.AttrUpdateTasks, err.Error())
		}
	}
	count, _ := r.ad.Int(roost.AttrTaskCount)
	for _, problem := range p.Problems(max(int(count), 1)) {
		if !problem.Warning {
			in.fail(problem.Field, problem.Text)
		}
	}
	if in.err != nil {
		r.fail(roost.AttrUpdate, in.err.Error())
	}
	return &p
}

// amount reads a number of tasks or a part of them.
func (r *adReader) amount(name string, otherwise update.Amount) (a update.Amount, stated bool) {
	if !r.has(name) {
		return otherwise, false
	}
	a, err := update.ParseAmount(r.text(name, ""))
	if err != nil {
		r.fail(name, err.Error())
		return otherwise, false
	}
	return a, true
}

// maxUpdateRanges bounds the rows of tasks that an update may name.
const maxUpdateRanges = 1000

// ParseUpdateTasks reads tasks such as "0-9,12".
func ParseUpdateTasks(s string) (list []update.Range, err error) {
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRow := strings.Cut(strings.TrimSpace(part), "-")
		r := update.Range{}
		if r.From, err = strconv.Atoi(first); err == nil {
			if r.To = r.From; isRow {
				r.To, err = strconv.Atoi(last)
			}
		}
		if err != nil || r.From < 0 || r.To < r.From || r.To >= roost.MaxTasks || len(list) >= maxUpdateRanges {
			return nil, fmt.Errorf("%w: %q are no tasks: write their numbers, as in \"0-9,12\"", roost.Invalid, s)
		}
		list = append(list, r)
	}
	return list, nil
}
