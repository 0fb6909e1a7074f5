package classad

// weigh takes the size of a value that becomes part of a list from what may be made, and says whether there was so much. Lists share
// their elements, so that one which costs little to make can be huge to print.
func (ev *evaluator) weigh(v Value) bool {
	if !ev.spend(64 + len(v.str)) {
		return false
	}
	if v.comp == nil {
		return true
	}
	for _, e := range v.comp.elems {
		if !ev.weighNode(e.n) {
			return false
		}
	}
	if v.kind == AdValue {
		for i := range v.comp.ad.labels {
			if !ev.spend(len(v.comp.ad.labels[i].name)) || !ev.weighNode(v.comp.ad.exprs[i].n) {
				return false
			}
		}
	}
	return true
}

func (ev *evaluator) weighNode(n node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *fixed:
		return ev.weigh(n.v)
	case *literal:
		return ev.spend(16 + len(n.v.str))
	}
	if !ev.spend(16) {
		return false
	}
	for child := range children(n) {
		if !ev.weighNode(child) {
			return false
		}
	}
	return true
}
