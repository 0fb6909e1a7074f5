package match

import "time"

// StartEstimate is when a request starts, how certain that is, and why.
type StartEstimate struct {
	Start     time.Time // zero: unknown
	Certainty StartCertainty
	Basis     string // one clause: what the start depends on, or why it is unknown
}

// startEstimate estimates when a request starts.
func (p startExplainer) startEstimate(t *waitExplainer) StartEstimate {
	w := t.request
	switch {
	case w.start > 0 && w.unusableReservation != "":
		return p.startText(w.start, w.certainty, "its reservation begins then")
	case w.unusableReservation != "":
		return StartEstimate{Basis: w.unusableReservation}
	case t.capable == 0:
		return StartEstimate{Basis: "no machine can run it"}
	case w.start > 0 && w.certainty == ByPrediction:
		return p.startText(w.start, w.certainty,
			"if the tasks there take as long as similar tasks did, in the present order")
	case w.start == p.now+1:
		return p.startText(w.start, w.certainty, "the walltime of the tasks there is over")
	case w.start > 0:
		return p.startText(w.start, w.certainty, "by the walltimes of the tasks there, in the present order")
	case w.waitReason != "" && w.waitReasonKind == OverLimit:
		return StartEstimate{Basis: "it depends on " + w.waitReason}
	case t.reasonCounts[RecentlyRefused]+t.reasonCounts[AvoidedPair] == t.capable:
		return StartEstimate{Basis: "it depends on machines that have just refused it, or on which its tasks " +
			"keep failing"}
	case w.preemption.awaitingVictims > 0:
		return StartEstimate{Basis: "it starts when the tasks that make room for it have left"}
	}
	return p.estimateStart(t)
}

func (p startExplainer) startText(at int64, c StartCertainty, basis string) StartEstimate {
	return StartEstimate{time.Unix(at, 0), c, basis}
}

// briefText returns the start in a few words.
func (e *StartEstimate) briefText(p *negotiationCycle) string {
	switch {
	case e.Start.IsZero():
		return ""
	case e.Start.Unix() <= p.now+1:
		return "starts any moment"
	case e.Certainty == ByWalltime:
		return "starts by " + p.explainer().clockText(e.Start)
	}
	return "starts about " + p.explainer().clockText(e.Start)
}

// clockText formats a near time: the time of day, with the date if it is not today.
func (p startExplainer) clockText(t time.Time) string {
	t = t.In(p.Now.Location())
	switch days := t.Sub(p.Now); {
	case t.YearDay() == p.Now.YearDay() && days < 24*time.Hour:
		return t.Format("15:04")
	case days < 300*24*time.Hour:
		return t.Format("Jan 2 15:04")
	}
	return t.Format("2006-01-02")
}
