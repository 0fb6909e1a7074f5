package classad

// MatchResult is the outcome of [Match].
type MatchResult struct {
	Matched             bool    // both Left and Right are true
	Left, Right         Value   // of each side's Requirements; UNDEFINED where missing
	LeftRank, RightRank float64 // of each side's Rank, 0 where it is not a number; evaluated only when Matched
}

// Match evaluates each ad's Requirements against the other. Both must be true, or a number that is not 0; a missing, UNDEFINED or
// ERROR Requirements does not match.
func Match(left, right *Ad, env *Env) MatchResult {
	if right == nil {
		right = New()
	}
	ev := newEvaluator(left, right, env)
	var r MatchResult
	r.Left = ev.named(&ev.left, "Requirements")
	r.Right = ev.named(&ev.right, "Requirements")
	r.Matched = r.Left.IsTrue() && r.Right.IsTrue()
	if r.Matched {
		r.LeftRank, _ = ev.named(&ev.left, "Rank").Number()
		r.RightRank, _ = ev.named(&ev.right, "Rank").Number()
	}
	return r
}

// named evaluates an attribute of f's ad itself.
func (ev *evaluator) named(f *frame, name string) Value {
	if i := f.ad.index(hashName(name), name); i >= 0 {
		return ev.bounded(ev.attribute(f, i))
	}
	return Value{}
}
