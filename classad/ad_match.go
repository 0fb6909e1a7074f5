package classad

// MatchResult is the outcome of [Match].
type MatchResult struct {
	Matched             bool    // both Left and Right are true
	Left, Right         Value   // of each side's Requirements; UNDEFINED where missing
	LeftRank, RightRank float64 // of each side's Rank, 0 where it is not a number; evaluated only when Matched
}

// Match evaluates each ad's Requirements against the other. Both must be true, or a
// number that is not 0; a missing, UNDEFINED or ERROR Requirements does not match.
func Match(left, right *Ad, env *EvalEnv) MatchResult {
	if right == nil {
		right = New()
	}
	ev := newEvaluator(left, right, env)
	var r MatchResult
	r.Left = ev.evalOwn(&ev.leftScope, "Requirements")
	r.Right = ev.evalOwn(&ev.rightScope, "Requirements")
	r.Matched = r.Left.IsTrue() && r.Right.IsTrue()
	if r.Matched {
		r.LeftRank, _ = ev.evalOwn(&ev.leftScope, "Rank").Number()
		r.RightRank, _ = ev.evalOwn(&ev.rightScope, "Rank").Number()
	}
	return r
}

// evalOwn evaluates an attribute of f's own ad.
func (ev *evaluator) evalOwn(f *nameScope, name string) Value {
	if i := f.ad.labelIndex(hashName(name), name); i >= 0 {
		return ev.withinBounds(ev.attribute(f, i))
	}
	return Value{}
}
