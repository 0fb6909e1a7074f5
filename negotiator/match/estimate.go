package match

import "time"

// Estimate is when a request starts, how sure that is, and what it rests on.
type Estimate struct {
	Start     time.Time // zero: nobody knows
	Certainty Certainty
	Basis     string // one clause: what the start hangs on, or why it is not known
}

// estimate says when a want starts.
func (p *plan) estimate(t *tally) Estimate {
	w := t.want
	switch {
	case w.start > 0 && w.barred != "":
		return p.starts(w.start, w.certainty, "its reservation begins then")
	case w.barred != "":
		return Estimate{Basis: w.barred}
	case t.capable == 0:
		return Estimate{Basis: "no machine can run it"}
	case w.start > 0 && w.certainty == ByPrediction:
		return p.starts(w.start, w.certainty, "if what runs there takes as long as tasks like it did, as things stand")
	case w.start == p.now+1:
		return p.starts(w.start, w.certainty, "the time of what runs there is up")
	case w.start > 0:
		return p.starts(w.start, w.certainty, "by the walltimes of what runs there, as things stand")
	case w.held != "" && w.heldBy == Rationed:
		return Estimate{Basis: "it hangs on " + w.held}
	case t.kinds[Refused]+t.kinds[Apart] == t.capable:
		return Estimate{Basis: "it hangs on machines that have just refused it, or on which its tasks keep failing"}
	case w.hunt.awaits > 0:
		return Estimate{Basis: "it starts when those have left who make room for it"}
	}
	return p.foretell(t)
}

func (p *plan) starts(at int64, c Certainty, basis string) Estimate {
	return Estimate{time.Unix(at, 0), c, basis}
}

// brief is the start in a few words.
func (e *Estimate) brief(p *plan) string {
	switch {
	case e.Start.IsZero():
		return ""
	case e.Start.Unix() <= p.now+1:
		return "starts any moment"
	case e.Certainty == ByWalltime:
		return "starts by " + p.clock(e.Start)
	}
	return "starts about " + p.clock(e.Start)
}

// clock writes a time that is near: the time of the day, and the day where it is not today.
func (p *plan) clock(t time.Time) string {
	t = t.In(p.Now.Location())
	switch days := t.Sub(p.Now); {
	case t.YearDay() == p.Now.YearDay() && days < 24*time.Hour:
		return t.Format("15:04")
	case days < 300*24*time.Hour:
		return t.Format("Jan 2 15:04")
	}
	return t.Format("2006-01-02")
}
